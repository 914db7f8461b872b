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

  // All axes that are left, from the fastest to the slowest.
  int axes() const { return nd_; }
  idx count(int axis) const { return k_[axis]; }
  idx step_x(int axis) const { return sx_[axis]; }
  idx step_y(int axis) const { return sy_[axis]; }
  // The same positions with x and y exchanged.
  Walk turned_round() const {
    Walk w;
    for (int i = 0; i < nd_; ++i) w.push(k_[i], sy_[i], sx_[i]);
    return w;
  }

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

// Dims that are reduced: a bit for each, and one for the mini-batch.
constexpr u32 kAllDims = (1u << kMaxDims) - 1, kBatchBit = 1u << kMaxDims;
constexpr bool is_reduced(u32 over, u32 i) { return (over >> i & 1u) != 0; }

// f(positions, step in x, step in y, is it reduced?) for each dim of x, in its order, and for the mini-batch; y stands
// still along what is reduced.
template <class F>
void each_reduced(const Dim& x, u32 over, F f) {
  Walk::idx sx = 1, sy = 1;
  for (u32 i = 0; i <= x.nd; ++i) {
    const Walk::idx k = i < x.nd ? x.d[i] : x.bd;
    const bool reduced = is_reduced(over, i < x.nd ? i : kMaxDims);
    f(k, sx, reduced ? 0 : sy, reduced);
    sx *= k;
    if (!reduced) sy *= k;
  }
}
inline Walk reduced_walk(const Dim& x, u32 over) {
  Walk w;
  each_reduced(x, over, [&](Walk::idx k, Walk::idx sx, Walk::idx sy, bool) { w.push(k, sx, sy); });
  return w;
}

// In the order of y, whose dim i is dim from(i) of x.
template <class F>
Walk transposed_walk(const Dim& x, const Dim& y, F from) {
  Walk::idx stride[kMaxDims], at = 1;
  for (u32 i = 0; i < kMaxDims; ++i) {
    stride[i] = at;
    at *= x[i];
  }
  Walk w;
  Walk::idx sy = 1;
  for (u32 i = 0; i < y.nd; ++i) {
    w.push(y.d[i], stride[from(i)], sy);
    sy *= y.d[i];
  }
  w.push(y.bd, at, sy);
  return w;
}

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
