// What a block finds out about many numbers: sums, the largest; and kernels that use it on one line.
//
// Partial sums are doubles, added in the order of the threads.
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
  DNL_UNROLL_BY_8
  for (int t = 0; t < 128; ++t) sum += part[t];
  return sum;
}

struct Largest {
  float value;
  i64 at;
};
// Of n numbers, NaN if any is; the first of equals. Known to all threads.
inline Largest block_max(i64 n, const float* x, i64 step = 1) {
  DNL_SHARED Largest part[128];
  Largest best = {-DNL_INFINITY, n};
  auto better = [](const Largest& a, const Largest& b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan && (!b_nan || a.at < b.at);
    return a.value > b.value || (a.value == b.value && a.at < b.at);
  };
  for (i64 i = DNL_THREAD; i < n; i += 128) {
    const Largest next = {x[i * step], i};
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
inline double count_inf(i64 n, const float* x, i64 step = 1) {
  return block_sum(n, [&](i64 i) { return x[i * step] == DNL_INFINITY ? 1.0 : 0.0; });
}
inline float block_log_sum_exp(i64 n, const float* x, i64 step = 1) {
  const float m = block_max(n, x, step).value;
  if (!usual(m)) return m;
  return static_cast<float>(m + log(block_sum(n, [&](i64 i) { return static_cast<double>(vexp(x[i * step] - m)); })));
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
    case kLogSumExp: out = block_log_sum_exp(r.n, x); break;
  }
  if (DNL_THREAD == 0) *reinterpret_cast<double*>(r.to) = out;
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
