// Kernels that look at a whole line of numbers: sums, softmax and its family, layer norm, attention scores.
//
// One block does a record. Partial sums are doubles, added in the order of the threads.
// Who may include: kernels/all.h. Includes: memory.h, functions.h.
#pragma once
#include "functions.h"
#include "memory.h"

namespace dnl::device {

// The sum over i < n of f(i), known to all threads.
template <class F>
inline double block_sum(i64 n, F f) {
  DNL_SHARED double part[128];
  double sum = 0;
  for (i64 i = DNL_THREAD; i < n; i += 128) sum += f(i);
  DNL_BARRIER();  // whoever still reads what was there before
  part[DNL_THREAD] = sum;
  DNL_BARRIER();
  sum = 0;
  for (int t = 0; t < 128; ++t) sum += part[t];
  return sum;
}

struct Largest {
  float value;
  i64 at;
};
// Of n numbers, NaN if any is; the first of equals. Known to all threads.
inline Largest block_max(i64 n, const float* x) {
  DNL_SHARED Largest part[128];
  Largest best = {-DNL_INFINITY, n};
  auto better = [](const Largest& a, const Largest& b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan && (!b_nan || a.at < b.at);
    return a.value > b.value || (a.value == b.value && a.at < b.at);
  };
  for (i64 i = DNL_THREAD; i < n; i += 128) {
    const Largest next = {x[i], i};
    if (better(next, best)) best = next;
  }
  DNL_BARRIER();
  part[DNL_THREAD] = best;
  DNL_BARRIER();
  for (int t = 0; t < 128; ++t)
    if (better(part[t], best)) best = part[t];
  return best;
}
inline bool usual(float m) { return m > -DNL_INFINITY && m < DNL_INFINITY; }
inline double count_inf(i64 n, const float* x) {
  return block_sum(n, [&](i64 i) { return x[i] == DNL_INFINITY ? 1.0 : 0.0; });
}

DNL_KERNEL(reduce, Reduce) {
  const Reduce& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0) return;
  const float *x = floats(r.x), *y = floats(r.y);
  double out = 0;
  switch (r.what) {
    case kSum: out = block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i]); }); break;
    case kSumSquares: out = block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i]) * x[i]; }); break;
    case kDot: out = block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i]) * y[i]; }); break;
    case kMax: out = block_max(r.n, x).value; break;
    case kArgmax: out = static_cast<double>(block_max(r.n, x).at); break;
    case kFinite: out = block_sum(r.n, [&](i64 i) { return x[i] - x[i] == 0.0f ? 0.0 : 1.0; }); break;
    case kNonzero: out = block_sum(r.n, [&](i64 i) { return x[i] == 0.0f ? 0.0 : 1.0; }); break;
    case kLogSumExp: {
      const float m = block_max(r.n, x).value;
      out = usual(m) ? m + log(block_sum(r.n, [&](i64 i) { return static_cast<double>(vexp(x[i] - m)); })) : m;
      break;
    }
  }
  if (DNL_THREAD == 0) *reinterpret_cast<double*>(r.to) = out;
}

DNL_KERNEL(softmax, Softmax) {
  const Softmax& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0) return;
  const float* x = floats(r.x);
  float* y = floats(r.y);
  const float m = block_max(r.n, x).value;
  const bool fine = usual(m);
  const double infinite = fine ? 0 : count_inf(r.n, x);
  const double sum = fine ? block_sum(r.n, [&](i64 i) { return static_cast<double>(vexp(x[i] - m)); }) : infinite;
  const float scale = static_cast<float>(1.0 / sum), log_sum = static_cast<float>(log(sum));
  DNL_BARRIER();  // y may be x
  for (i64 i = DNL_THREAD; i < r.n; i += 128) {
    const float v = x[i];
    if (fine)
      y[i] = r.logarithm ? (v - m) - log_sum : vexp(v - m) * scale;
    else if (m != m)
      y[i] = m;
    else if (r.logarithm)
      y[i] = v == DNL_INFINITY ? -log_sum : -DNL_INFINITY;
    else
      y[i] = v == DNL_INFINITY ? scale : 0.0f;
  }
}

DNL_KERNEL(softmax_back, SoftmaxBack) {
  const SoftmaxBack& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0) return;
  const float *y = floats(r.y), *dy = floats(r.dy);
  const float sum = static_cast<float>(block_sum(
      r.n, [&](i64 i) { return r.logarithm ? static_cast<double>(dy[i]) : static_cast<double>(y[i]) * dy[i]; }));
  for (i64 i = DNL_THREAD; i < r.n; i += 128)
    put(floats(r.dx) + i, r.logarithm ? dy[i] - vexp(y[i]) * sum : y[i] * (dy[i] - sum), r.acc);
}

DNL_KERNEL(exp_shifted, ExpShifted) {
  const ExpShifted& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.n; i += s.step) {
    const float v = floats(r.x)[i], e = v == r.lse ? 1.0f : vexp(v - r.lse);
    put(floats(r.dx) + i, r.d * (v == -DNL_INFINITY ? 0.0f : e), r.acc);
  }
}

DNL_KERNEL(exp_below, ExpBelow) {
  const ExpBelow& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0) return;
  const float* x = floats(r.x);
  float* y = floats(r.y);
  double* state = reinterpret_cast<double*>(r.state);
  const float m = block_max(r.n, x).value;
  float largest = static_cast<float>(state[0]);
  double sum = state[1];
  if (!(m <= largest) && largest == largest) {
    if (sum > 0) sum *= exp(static_cast<double>(largest) - m);
    largest = m;
  }
  const bool fine = usual(largest);
  if (fine)
    sum += block_sum(r.n, [&](i64 i) { return static_cast<double>(vexp(x[i] - largest)); });
  else {
    const double infinite = count_inf(r.n, x);
    if (largest == DNL_INFINITY) sum += infinite;
  }
  DNL_BARRIER();  // y may be x
  for (i64 i = DNL_THREAD; i < r.n; i += 128)
    y[i] = fine ? vexp(x[i] - largest) : largest != largest ? largest : x[i] == DNL_INFINITY ? 1.0f : 0.0f;
  if (DNL_THREAD != 0) return;
  state[0] = largest;
  state[1] = sum;
}

DNL_KERNEL(layer_norm, LayerNorm) {
  const LayerNorm& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0 || r.n == 0) return;
  const float* x = floats(r.x);
  const double n = static_cast<double>(r.n);
  // The second look makes the mean of equal numbers exactly that number.
  const float first = static_cast<float>(block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i]); }) / n);
  const double rest = block_sum(r.n, [&](i64 i) { return static_cast<double>(x[i] - first); }) / n;
  const float mean = static_cast<float>(first + rest);
  const double var = block_sum(r.n,
                               [&](i64 i) {
                                 const double d = static_cast<double>(x[i]) - mean;
                                 return d * d;
                               }) /
                     n;
  const float rstd = var > 0 ? static_cast<float>(1.0 / sqrt(var)) : var == 0 ? 0.0f : DNL_NAN;
  DNL_BARRIER();
  for (i64 i = DNL_THREAD; i < r.n; i += 128) floats(r.y)[i] = floats(r.g)[i] * ((x[i] - mean) * rstd) + floats(r.b)[i];
  if (DNL_THREAD != 0) return;
  floats(r.stats)[0] = mean;
  floats(r.stats)[1] = rstd;
}

DNL_KERNEL(layer_norm_back, LayerNormBack) {
  const LayerNormBack& r = records[DNL_RECORD];
  if (DNL_BLOCK > 0 || r.n == 0) return;
  const float *x = floats(r.x), *g = floats(r.g), *dy = floats(r.dy);
  const float mean = floats(r.stats)[0], rstd = floats(r.stats)[1];
  const double n = static_cast<double>(r.n);
  auto normal = [&](i64 i) { return (x[i] - mean) * rstd; };
  const float m1 = static_cast<float>(block_sum(r.n, [&](i64 i) { return static_cast<double>(dy[i]) * g[i]; }) / n);
  const float m2 =
      static_cast<float>(block_sum(r.n, [&](i64 i) { return static_cast<double>(dy[i]) * g[i] * normal(i); }) / n);
  for (i64 i = DNL_THREAD; i < r.n; i += 128) {
    const float z = normal(i), d = dy[i];
    if (r.db) floats(r.db)[i] += d;
    if (r.dg) floats(r.dg)[i] += d * z;
    if (r.dx) put(floats(r.dx) + i, rstd * (d * g[i] - m1 - z * m2), r.acc);
  }
}

// A block takes columns in turns.
DNL_KERNEL(attention_scores, AttentionScores) {
  const AttentionScores& r = records[DNL_RECORD];
  const float *query = floats(r.query), *v = floats(r.v);
  for (i64 c = DNL_BLOCK; c < r.columns; c += DNL_BLOCKS) {
    const float* key = floats(r.keys) + c * r.n;
    const double sum = block_sum(r.n, [&](i64 i) { return static_cast<double>(v[i] * vtanh(key[i] + query[i])); });
    if (DNL_THREAD == 0) floats(r.scores)[c] = static_cast<float>(sum);
  }
}

// One thread a row of the keys: what it adds up over the columns has a fixed order.
DNL_KERNEL(attention_scores_back, AttentionScoresBack) {
  const AttentionScoresBack& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.n; i += s.step) {
    const float q = floats(r.query)[i], v = floats(r.v)[i];
    float dq = 0, dv = 0;
    for (i64 c = 0; c < r.columns; ++c) {
      const float d = floats(r.dscores)[c], t = vtanh(floats(r.keys)[c * r.n + i] + q);
      const float sum = d * v * (1.0f - t * t);
      if (r.dkeys) put(floats(r.dkeys) + c * r.n + i, sum, r.acc);
      dq += sum;
      dv += d * t;
    }
    if (r.dquery) floats(r.dquery)[i] += dq;
    floats(r.dv)[i] += dv;
  }
}

}  // namespace dnl::device
