// Walk: two tensors visited in step, each with its own strides: what slices, transposes and reductions share.
//
// Dims are pushed from the fastest to the slowest. Neighbours that continue one another in both tensors are merged and
// dims of size 1 are dropped, so that the inner run is as long as the layouts allow. Axis: a shape seen from one dim.
// Arithmetic on offsets only; no memory is touched here. Includes: base/dim.h.
#pragma once
#include <cstddef>

#include "base/dim.h"

namespace dnl {

class Walk {
 public:
  using idx = std::ptrdiff_t;

  // `k` positions that lie `tx` apart in x and `ty` apart in y.
  void push(idx k, idx tx, idx ty) {
    if (k == 1) return;
    if (nd_ > 0) {
      const int last = nd_ - 1;
      if (tx == sx_[last] * k_[last] && ty == sy_[last] * k_[last]) {
        k_[last] *= k;
        return;
      }
    }
    k_[nd_] = k;
    sx_[nd_] = tx;
    sy_[nd_] = ty;
    ++nd_;
  }

  // The inner run: n positions with these steps (1 position when nothing was pushed).
  idx n() const { return nd_ ? k_[0] : 1; }
  idx sx() const { return nd_ ? sx_[0] : 1; }
  idx sy() const { return nd_ ? sy_[0] : 1; }
  bool one_run() const { return nd_ <= 1; }

  // f(offset in x, offset in y) at the beginning of every inner run.
  template <class F>
  void each(F f) const {
    idx at[kMaxDims + 1] = {0};
    idx x = 0, y = 0;
    for (;;) {
      f(x, y);
      int i = 1;
      for (; i < nd_; ++i) {
        x += sx_[i];
        y += sy_[i];
        if (++at[i] < k_[i]) break;
        x -= sx_[i] * k_[i];
        y -= sy_[i] * k_[i];
        at[i] = 0;
      }
      if (i >= nd_) return;
    }
  }

 private:
  int nd_ = 0;
  idx k_[kMaxDims + 1], sx_[kMaxDims + 1], sy_[kMaxDims + 1];
};

// A shape seen from dim d: element (i, k, o) lies at (o * n + k) * inner + i, with k running along d. `outer` counts
// everything slower than d, the mini-batch too.
struct Axis {
  std::ptrdiff_t inner = 1, n = 1, outer = 1;
  Axis(const Dim& x, u32 d) : n(x[d]), outer(x.bd) {
    for (u32 i = 0; i < d && i < x.nd; ++i) inner *= x.d[i];
    for (u32 i = d + 1; i < x.nd; ++i) outer *= x.d[i];
  }
};

}  // namespace dnl
