// Window: the places of a window that moves along one axis of an image.
// Who may include: ops/. Includes: kernels/kernels.h for idx.
#pragma once
#include <algorithm>

#include "kernels/kernels.h"

namespace dnl {

// A window of k along an axis of n. Without padding ("valid") it takes the places where it fits, floor((n - k) /
// stride)
// + 1; with padding ("same") ceil(n / stride), and the odd element of padding goes to the end (the rule of TensorFlow).
struct Window {
  idx n, k, stride, out, pad;
  Window(idx size, idx window, idx step, bool valid) : n(size), k(window), stride(step) {
    out = valid ? (n - k) / stride + 1 : (n + stride - 1) / stride;
    pad = valid ? 0 : std::max<idx>(0, (out - 1) * stride + k - n) / 2;
  }
  // What of the axis lies under the window at place o: first..last-1.
  idx first(idx o) const { return std::max<idx>(0, o * stride - pad); }
  idx last(idx o) const { return std::min(n, o * stride - pad + k); }
};

}  // namespace dnl
