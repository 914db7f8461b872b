// Optimizer rules, one thread a weight; what c[] and the states mean is told in kernels/updates.h.
// Who may include: kernels/all.h. Includes: memory.h, functions.h.
#pragma once
#include "functions.h"
#include "memory.h"

namespace dnl::device {

// The new weight; `at`: where it and its states lie.
inline float updated(const Update& r, i64 at, float w, float g) {
  float *s0 = floats(r.s0) + at, *s1 = floats(r.s1) + at, *s2 = floats(r.s2) + at;
  const float lr = r.c[0];
  switch (r.rule) {
    case kSgd: return w - lr * g;
    case kMomentum: return w + (*s0 = r.c[1] * *s0 - lr * g);
    case kAdagrad: *s0 += g * g; return g == 0.0f ? w : w - lr * g / vsqrt(*s0 + r.c[1]);
    case kAdadelta: {
      const float rho = r.c[2], rest = 1.0f - rho;
      *s0 = rho * *s0 + rest * g * g;
      const float step = -g * vsqrt((*s1 + r.c[1]) / (*s0 + r.c[1]));
      *s1 = rho * *s1 + rest * step * step;
      return w + lr * step;
    }
    case kRmsprop: *s0 = r.c[2] * *s0 + (1.0f - r.c[2]) * g * g; return w - lr * g / vsqrt(*s0 + r.c[1]);
    case kEgBegin:  // the logarithm of the weight that softmax will make of all of them
      *s0 = r.c[1] * *s0 - lr * g;
      return vlog(w) + *s0;
    default: {
      const float rate = static_cast<float>(lr * sqrt(static_cast<double>(r.c[5])) / r.c[4]);
      *s0 = r.c[1] * *s0 + (1.0f - r.c[1]) * g;
      *s1 = r.c[2] * *s1 + (1.0f - r.c[2]) * g * g;
      float v = *s1;
      if (r.rule == kAmsgrad) v = *s2 = vmax(*s2, v);
      return w - rate * *s0 / (vsqrt(v) + r.c[3]);
    }
  }
}

DNL_KERNEL(update, Update) {
  const Update& r = records[DNL_RECORD];
  const u32* row = reinterpret_cast<const u32*>(r.row);
  const i32* slot = reinterpret_cast<const i32*>(r.slot);
  const float keep = r.rule == kEgBegin ? 1.0f : 1.0f - r.wdecay;
  const float factor = r.factor ? *floats(r.factor) : 1.0f, gscale = r.gscale * factor;
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.rows * r.n; i += s.step) {
    const i64 m = i / r.n, j = i % r.n, at = (row ? row[m] : m) * r.n + j;
    float* g = slot ? (slot[m] < 0 ? nullptr : floats(r.g) + slot[m] * r.n + j) : floats(r.g) + i;
    float* w = floats(r.w) + at;
    if (factor == factor) *w = updated(r, at, *w, g ? gscale * *g : 0.0f) * keep;
    if (g) *g = 0.0f;
  }
}

DNL_KERNEL(clip, Clip) {
  const Clip& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0 || DNL_THREAD > 0) return;
  double squares = 0;
  for (i64 i = 0; i < r.k; ++i) squares += reinterpret_cast<const double*>(r.sums)[i];
  const double norm = sqrt(squares);
  floats(r.to)[0] = !(norm - norm == 0) ? DNL_NAN : norm > r.most ? static_cast<float>(r.most / norm) : 1.0f;
  floats(r.to)[1] = static_cast<float>(norm);
}

}  // namespace dnl::device
