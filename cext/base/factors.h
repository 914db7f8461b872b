// A number as the product of few floats.
//
// Formulas have their constants in float32. A finite number that this cannot hold, or only with few digits, 1e40 or
// 1e-45, may still give results that it can hold: (x * 1e-30) / 1e-40. So it is split, and its factors are applied one
// by one. Who may include: anyone. Includes: standard library only.
#pragma once
#include <cmath>
#include <limits>

namespace dnl {

struct Factors {
  int n = 1;
  float f[3] = {};
};

// One factor where a float holds c with all its digits, or c is 0, infinite or NaN. Else two or three, all above 1 or
// all below, so that no step overflows unless the result does. Three of the greatest floats take every float to
// infinity, three of the least to 0, as all numbers beyond do.
inline Factors factors_of(double c) {
  using Limits = std::numeric_limits<float>;
  constexpr double kMost = Limits::max(), kLeast = Limits::min();
  const double size = std::fabs(c);
  Factors out;
  out.f[0] = static_cast<float>(c);
  if (c == 0 || !std::isfinite(c) || (size >= kLeast && size <= kMost)) return out;
  const bool two = size >= kLeast * kLeast && size <= kMost * kMost;
  out.n = two ? 2 : 3;
  double left = size;
  for (int k = 0; k + 1 < out.n; ++k) {
    const double root = two ? std::sqrt(size) : std::cbrt(size);
    out.f[k] = static_cast<float>(std::fmin(std::fmax(root, kLeast), kMost));
    left /= out.f[k];
  }
  out.f[out.n - 1] =
      std::copysign(static_cast<float>(std::fmin(std::fmax(left, kLeast), kMost)), static_cast<float>(c));
  return out;
}

// 1 / c for c other than 0: beyond the range of doubles its greatest number, for 0 / c is 0.
inline double inverse_of(double c) {
  const double inverse = 1.0 / c;
  return std::isinf(inverse) ? std::copysign(std::numeric_limits<double>::max(), c) : inverse;
}

}  // namespace dnl
