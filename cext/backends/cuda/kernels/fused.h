// The program of a fused node, a number of its value a thread.
//
// Which operand a step reads is known at run time only. So operands lie in shared memory, a column a thread: that costs
// no bank conflicts, and arrays of a thread's own would be far away.
// Who may include: kernels/all.h. Includes: elementwise.h, memory.h.
#pragma once
#include "elementwise.h"
#include "memory.h"

namespace dnl::device {

constexpr int kFusedThreads = 64;

// Number i of member m.
struct FusedNumber {
  using Operands = float (&)[kMostFusedInputs + kMostFusedSteps][kFusedThreads];

  const FusedInput* input;
  const float* constants;
  i64 m, i;
  Operands operands;

  // Reads the inputs that are wanted: before anything is written over them.
  FusedNumber(const Fused& r, i64 k, Operands room)
      : input(reinterpret_cast<const FusedInput*>(r.inputs)), m(k / r.n), i(k % r.n), operands(room) {
    constants = floats(r.constants) + m * r.constants_step;
    for (int j = 0; j < r.ninputs; ++j)
      if (wanted(input[j].x)) operand(j) = row(input[j].x, m)[i];
  }
  float& operand(int at) const { return operands[at][DNL_THREAD]; }
  float& result(int step) const { return operand(kMostFusedInputs + step); }

  float value(const FusedStep& s) const {
    const float *a = constants + s.constant, u = operand(s.a);
    float y = 0;
    if (s.flags & kBinary) {
      const float v = operand(s.b);
      choose_binary(s.formula, [&](auto f) { y = decltype(f)::fwd(u, v, a); });
    } else {
      choose_unary(s.formula, [&](auto f) { y = decltype(f)::fwd(u, a); });
    }
    return y;
  }
};
inline const FusedStep* steps_of(const Fused& r) { return reinterpret_cast<const FusedStep*>(r.steps); }

DNL_KERNEL(fused, Fused) {
  const Fused& r = records[DNL_RECORD];
  const FusedStep* step = steps_of(r);
  const Stride s = stride(kFusedThreads);
  DNL_SHARED float operands[kMostFusedInputs + kMostFusedSteps][kFusedThreads];
  for (i64 k = s.first; k < r.members * r.n; k += s.step) {
    const FusedNumber one(r, k, operands);
    for (int t = 0; t < r.count; ++t) {
      if (r.restore && !(step[t].flags & kOver)) continue;
      const float y = one.value(step[t]);
      if (step[t].flags & kOver) row(one.input[step[t].a].x, one.m)[one.i] = one.operand(step[t].a) = y;
      one.result(t) = y;
    }
    if (!r.restore) row(r.y, one.m)[one.i] = one.result(r.count - 1);
  }
}

// Gradients of results, and of inputs where these lie, which may be where the input lies.
struct FusedGradients {
  const FusedNumber& one;
  float (&gradients)[kMostFusedSteps][kFusedThreads];

  float& incoming(int step) const { return gradients[step][DNL_THREAD]; }
  void give(int to, float d, bool add) const {
    if (to < kMostFusedInputs)
      put(row(one.input[to].dx, one.m) + one.i, d, add);
    else
      incoming(to - kMostFusedInputs) = d;
  }
  void step(const FusedStep& s, int t) const {
    const float dy = incoming(t), y = s.flags & kReadResult ? one.result(t) : 0.0f;
    const float *a = one.constants + s.constant, u = s.flags & kReadA ? one.operand(s.a) : 0.0f;
    float du = 0, dv = 0;
    if (s.flags & kBinary) {
      const float v = s.flags & kReadB ? one.operand(s.b) : 0.0f;
      choose_binary(s.formula, [&](auto f) {
        if (s.flags & kGiveA) du = decltype(f)::bwd_u(u, v, y, dy, a);
        if (s.flags & kGiveB) dv = decltype(f)::bwd_v(u, v, y, dy, a);
      });
    } else {
      choose_unary(s.formula, [&](auto f) { du = decltype(f)::bwd(u, y, dy, a); });
    }
    if (s.flags & kGiveA) give(s.a, du, s.flags & kAddA);
    if (s.flags & kGiveB) give(s.b, dv, s.flags & kAddB);
  }
};

DNL_KERNEL(fused_back, Fused) {
  const Fused& r = records[DNL_RECORD];
  const FusedStep* step = steps_of(r);
  const Stride s = stride(kFusedThreads);
  DNL_SHARED float operands[kMostFusedInputs + kMostFusedSteps][kFusedThreads];
  DNL_SHARED float gradients[kMostFusedSteps][kFusedThreads];
  const int last = r.count - 1;
  for (i64 k = s.first; k < r.members * r.n; k += s.step) {
    const FusedNumber one(r, k, operands);
    for (int t = 0; t < last; ++t)
      if (step[t].flags & kMade) one.result(t) = step[t].flags & kOver ? one.operand(step[t].a) : one.value(step[t]);
    const FusedGradients back{one, gradients};
    back.incoming(last) = row(r.dy, one.m)[one.i];
    if (wanted(r.y)) one.result(last) = row(r.y, one.m)[one.i];
    for (int t = last; t >= 0; --t)
      if (step[t].flags & (kGiveA | kGiveB)) back.step(step[t], t);
  }
}

}  // namespace dnl::device
