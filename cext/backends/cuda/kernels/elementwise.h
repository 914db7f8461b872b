// Elementwise kernels: the formulas of kernels/formulas.h, chosen by number once a thread.
// Who may include: kernels/all.h. Includes: memory.h, functions.h, kernels/formulas.h.
#pragma once
#include "kernels/formula_info.h"
#include "functions.h"
#include "memory.h"

namespace dnl::device {

// The formulas in the order of their lines, which is that of their numbers. The device's compiler has no counter: each
// line declares a function that returns all formulas so far, and takes what only it is the best match for.
template <class... S>
struct Formulas {
  static constexpr int kCount = sizeof...(S);
  template <class More>
  using With = Formulas<S..., More>;
};
template <int N>
struct Nth : Nth<N - 1> {};
template <>
struct Nth<0> {};
constexpr int kMostFormulas = 128;
Formulas<> unary_formulas(Nth<0>);
Formulas<> binary_formulas(Nth<0>);
using AnyNth = Nth<kMostFormulas>;
#define DNL_UNARY(S)                                                   \
  decltype(unary_formulas(AnyNth{}))::template With<S> unary_formulas( \
      Nth<decltype(unary_formulas(AnyNth{}))::kCount + 1>);
#define DNL_BINARY(S)                                                    \
  decltype(binary_formulas(AnyNth{}))::template With<S> binary_formulas( \
      Nth<decltype(binary_formulas(AnyNth{}))::kCount + 1>);
#include "kernels/formulas.h"
#undef DNL_UNARY
#undef DNL_BINARY

// run(S{}) for the formula of that number.
template <class... S, class Run>
inline void choose(Formulas<S...>, int formula, Run run) {
  int at = 0;
  ((at++ == formula ? run(S{}) : void()), ...);
}
template <class Run>
inline void choose_unary(int formula, Run run) {
  choose(decltype(unary_formulas(AnyNth{})){}, formula, run);
}
template <class Run>
inline void choose_binary(int formula, Run run) {
  choose(decltype(binary_formulas(AnyNth{})){}, formula, run);
}

DNL_KERNEL(unary, Unary) {
  const Unary& r = records[DNL_RECORD];
  const Stride s = stride(128);
  choose_unary(r.formula, [&](auto f) {
    for (i64 i = s.first; i < r.n; i += s.step) floats(r.y)[i] = decltype(f)::fwd(floats(r.x)[i], r.a);
  });
}

DNL_KERNEL(unary_back, UnaryBack) {
  const UnaryBack& r = records[DNL_RECORD];
  const Stride s = stride(128);
  choose_unary(r.formula, [&](auto f) {
    constexpr unsigned reads = decltype(f)::info.reads;
    for (i64 i = s.first; i < r.n; i += s.step) {
      const float x = reads & kReadsX ? floats(r.x)[i] : 0.0f, y = reads & kReadsY ? floats(r.y)[i] : 0.0f;
      put(floats(r.dx) + i, decltype(f)::bwd(x, y, floats(r.dy)[i], r.a), r.acc);
    }
  });
}

DNL_KERNEL(binary, Binary) {
  const Binary& r = records[DNL_RECORD];
  const Stride s = stride(128);
  choose_binary(r.formula, [&](auto f) {
    for (i64 i = s.first; i < r.n; i += s.step)
      floats(r.y)[i] = decltype(f)::fwd(floats(r.u)[i * r.su], floats(r.v)[i * r.sv], r.a);
  });
}

template <class S>
inline float binary_gradient(const BinaryBack& r, i64 i) {
  constexpr unsigned reads = S::info.reads;
  const float u = reads & kReadsX ? floats(r.u)[i * r.su] : 0.0f, v = reads & kReadsV ? floats(r.v)[i * r.sv] : 0.0f,
              y = reads & kReadsY ? floats(r.y)[i] : 0.0f, dy = floats(r.dy)[i];
  return r.second ? S::bwd_v(u, v, y, dy, r.a) : S::bwd_u(u, v, y, dy, r.a);
}

DNL_KERNEL(binary_back, BinaryBack) {
  const BinaryBack& r = records[DNL_RECORD];
  const Stride s = stride(128);
  choose_binary(r.formula, [&](auto f) {
    for (i64 i = s.first; i < r.n; i += s.step) put(floats(r.d) + i, binary_gradient<decltype(f)>(r, i), r.acc);
  });
}

// The gradient of one number that stands for all i: by one block, in double, in a fixed order.
DNL_KERNEL(binary_back_sum, BinaryBack) {
  const BinaryBack& r = records[DNL_RECORD];
  DNL_SHARED double part[128];
  if (DNL_BLOCK > 0) return;
  double sum = 0;
  choose_binary(r.formula, [&](auto f) {
    for (i64 i = DNL_THREAD; i < r.n; i += 128) sum += static_cast<double>(binary_gradient<decltype(f)>(r, i));
  });
  part[DNL_THREAD] = sum;
  DNL_BARRIER();
  if (DNL_THREAD != 0) return;
  for (int t = 1; t < 128; ++t) sum += part[t];
  put(floats(r.d), static_cast<float>(sum), r.acc);
}

}  // namespace dnl::device
