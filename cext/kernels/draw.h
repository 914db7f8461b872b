// An index drawn by the probabilities of a softmax, on the host.
//
// Who may include: bindings/. Includes: base/.
#pragma once
#include "base/rng.h"

namespace dnl {

// One of n, drawn by probabilities that add up to 1 but for rounding; never one whose probability is 0. n if none is
// above 0, or one is NaN.
inline std::size_t draw_index(const float* p, std::size_t n, u64 random) {
  const double u = static_cast<double>(random >> 11) * 0x1p-53;  // from 0 up to 1, without it
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += p[i];
    if (sum > u) return i;
  }
  for (std::size_t i = n; i-- > 0 && sum == sum;)
    if (p[i] > 0) return i;  // the sum was rounded to less than 1
  return n;
}

}  // namespace dnl
