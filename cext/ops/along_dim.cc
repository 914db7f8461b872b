// What runs along one dim: max_dim, min_dim, argmax, cumsum, kmax_pooling.
//
// Ties go to the first; NaN counts as larger than everything, for a minimum as smaller, so it is never hidden. The
// places that won are kept from forward for backward, as integers in the memory of a hidden output.
#include <algorithm>

#include "base/walk.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// A number of 32 bits that orders as the float does, NaN above all; -0 and 0 are equal.
u32 order_of(float v) {
  if (v != v) return 0xffffffffu;
  if (v == 0.f) v = 0.f;
  u32 bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
void put(float* at, u32 v) { std::memcpy(at, &v, sizeof v); }
u32 get(const float* at) {
  u32 v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

// ---- max_dim, min_dim ---------------------------------------------------------------------------

ShapeOut best_shape(const ShapeIn& in) {
  Dim y = in[0];
  y.remove(in.dim_at(0));
  return ShapeOut(y).hidden(y);  // hidden: where it was found
}

// Place of the best of n numbers `step` apart.
template <bool kMax>
idx best_of(const float* x, idx n, idx step) {
  idx best = 0;
  for (idx k = 1; k < n; ++k) {
    const float v = x[k * step], b = x[best * step];
    if (b != b) break;
    if (v != v || (kMax ? v > b : v < b)) best = k;
  }
  return best;
}

template <bool kMax>
void best_forward(const Call& c) {
  const Axis a(*c.arg_dim[0], c.key[0].u);
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < a.outer; ++o)
      for (idx i = 0; i < a.inner; ++i) {
        const float* x = c.x[0][m] + o * a.n * a.inner + i;
        const idx k = best_of<kMax>(x, a.n, a.inner);
        c.y[0][m][o * a.inner + i] = x[k * a.inner];
        put(c.y[1][m] + o * a.inner + i, static_cast<u32>(k));
      }
}

void best_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Axis a(*c.arg_dim[0], c.key[0].u);
  for (int m = 0; m < c.members; ++m) {
    if (!c.acc[0]) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
    for (idx o = 0; o < a.outer; ++o)
      for (idx i = 0; i < a.inner; ++i) {
        const idx y = o * a.inner + i, k = get(c.y[1][m] + y);
        c.dx[0][m][(o * a.n + k) * a.inner + i] += c.dy[0][m][y];
      }
  }
}

const OpId max_dim_id = register_op([](OpDef& op) {
  op.signature = "max_dim(x: expr, d: int = 0)";
  op.doc =
      "Largest element along dim d, which is removed.\n\n"
      "{m,n} -> {n} with d=0, {m} with d=1; {n} -> {1}. Of equal elements the first gets the gradient. "
      "ValueError if x has no dim d.";
  op.args = {{"x"}};
  op.shape = best_shape;
  op.forward = best_forward<true>;
  op.backward = best_backward;
});

const OpId min_dim_id = register_op([](OpDef& op) {
  op.signature = "min_dim(x: expr, d: int = 0)";
  op.doc =
      "Smallest element along dim d, which is removed.\n\n"
      "{m,n} -> {n} with d=0, {m} with d=1; {n} -> {1}. Of equal elements the first gets the gradient. "
      "ValueError if x has no dim d.";
  op.args = {{"x"}};
  op.shape = best_shape;
  op.forward = best_forward<false>;
  op.backward = best_backward;
});

// ---- argmax -------------------------------------------------------------------------------------

const OpId argmax_id = register_op([](OpDef& op) {
  op.signature = "_argmax(x: expr, straight_through: bool, d: int)";
  op.doc = "1 at the largest element along dim d, 0 elsewhere; the shape stays. The gradient is 0, or that of x.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.dim_at(1);
    return in[0];
  };
  op.forward = [](const Call& c) {
    const Axis a(*c.arg_dim[0], c.key[1].u);
    for (int m = 0; m < c.members; ++m) {
      kernels().fill(c.out_size(), 0.f, c.y[0][m]);
      for (idx o = 0; o < a.outer; ++o)
        for (idx i = 0; i < a.inner; ++i) {
          const idx at = o * a.n * a.inner + i;
          c.y[0][m][at + best_of<true>(c.x[0][m] + at, a.n, a.inner) * a.inner] = 1.f;
        }
    }
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    for (int m = 0; m < c.members; ++m) {
      if (c.key[0].i)
        kernels().scale_to(c.out_size(), 1.f, c.dy[0][m], c.dx[0][m], c.acc[0]);
      else if (!c.acc[0])
        kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
    }
  };
});

// ---- cumsum -------------------------------------------------------------------------------------

// Running sums of rows of `inner` numbers, from the first row on or from the last back.
void running_sums(const Axis& a, const float* from, float* to, bool backward, bool acc, float* sum) {
  for (idx o = 0; o < a.outer; ++o) {
    kernels().fill(a.inner, 0.f, sum);
    for (idx k = 0; k < a.n; ++k) {
      const idx at = (o * a.n + (backward ? a.n - 1 - k : k)) * a.inner;
      for (idx i = 0; i < a.inner; ++i) {
        sum[i] += from[at + i];
        to[at + i] = acc ? to[at + i] + sum[i] : sum[i];
      }
    }
  }
}

const OpId cumsum_id = register_op([](OpDef& op) {
  op.signature = "cumsum(x: expr, d: int = 0)";
  op.doc =
      "Running sums along dim d.\n\n"
      "Any shape; the result has the same shape. ValueError if x has no dim d.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    in.dim_at(0);
    return in[0];
  };
  op.forward = [](const Call& c) {
    const Axis a(*c.arg_dim[0], c.key[0].u);
    float* sum = c.scratch->alloc(a.inner);
    for (int m = 0; m < c.members; ++m) running_sums(a, c.x[0][m], c.y[0][m], false, false, sum);
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const Axis a(*c.arg_dim[0], c.key[0].u);
    float* sum = c.scratch->alloc(a.inner);
    for (int m = 0; m < c.members; ++m) running_sums(a, c.dy[0][m], c.dx[0][m], true, c.acc[0], sum);
  };
});

// ---- kmax_pooling -------------------------------------------------------------------------------

// Key words: k, dim.
void kmax_forward(const Call& c) {
  const Axis a(*c.arg_dim[0], c.key[1].u);
  const idx k = c.key[0].i;
  u32* place = c.scratch->array<u32>(a.n);
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < a.outer; ++o)
      for (idx i = 0; i < a.inner; ++i) {
        const float* x = c.x[0][m] + o * a.n * a.inner + i;
        for (idx j = 0; j < a.n; ++j) place[j] = static_cast<u32>(j);
        std::nth_element(place, place + (k - 1), place + a.n, [&](u32 p, u32 q) {
          const u32 vp = order_of(x[p * a.inner]), vq = order_of(x[q * a.inner]);
          return vp != vq ? vp > vq : p < q;
        });
        std::sort(place, place + k);
        for (idx j = 0; j < k; ++j) {
          const idx y = (o * k + j) * a.inner + i;
          c.y[0][m][y] = x[place[j] * a.inner];
          put(c.y[1][m] + y, place[j]);
        }
      }
}

void kmax_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Axis a(*c.arg_dim[0], c.key[1].u);
  const idx k = c.key[0].i;
  for (int m = 0; m < c.members; ++m) {
    if (!c.acc[0]) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
    for (idx o = 0; o < a.outer; ++o)
      for (idx j = 0; j < k; ++j)
        for (idx i = 0; i < a.inner; ++i) {
          const idx y = (o * k + j) * a.inner + i;
          c.dx[0][m][(o * a.n + get(c.y[1][m] + y)) * a.inner + i] += c.dy[0][m][y];
        }
  }
}

const OpId kmax_pooling_id = register_op([](OpDef& op) {
  op.signature = "kmax_pooling(x: expr, k: int, d: int = 1)";
  op.doc =
      "The k largest elements along dim d, in their original order (Kalchbrenner, Grefenstette, Blunsom, 2014).\n\n"
      "{m,n} -> {m,k} with d=1, {k,n} with d=0. Of equal elements the first are taken. ValueError if x has no "
      "dim d, or unless k is between 1 and its size.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 d = in.dim_at(1);
    const i32 k = in.key[0].i;
    in.need(k >= 1 && static_cast<u32>(k) <= in[0].d[d], "k must be 1 to the size of the dim");
    Dim y = in[0];
    y.d[d] = static_cast<u32>(k);
    return ShapeOut(y).hidden(y);
  };
  op.forward = kmax_forward;
  op.backward = kmax_backward;
});

}  // namespace
}  // namespace dnl
