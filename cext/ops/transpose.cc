// transpose: any permutation of the dims.
#include "base/walk.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// Key words: number of dims, then for each dim of the result the dim of x it comes from.
ShapeOut shape(const ShapeIn& in) {
  const Dim& x = in[0];
  const i32 n = in.key[0].i;
  in.need(n >= 1 && n <= kMaxDims && static_cast<u32>(n) >= x.nd, "dims must name every dim (at most 7)");
  Dim y;
  y.bd = x.bd;
  u32 seen = 0;
  i32 last = -1;
  bool alias = true;  // no dim of more than one element moves past another
  for (i32 i = 0; i < n; ++i) {
    const i32 d = in.key[1 + i].i;
    in.need(d >= 0 && d < n && !(seen >> d & 1u), "dims must be a permutation of 0, 1, 2, ...");
    seen |= 1u << d;
    y.push(x[static_cast<u32>(d)]);
    if (x[static_cast<u32>(d)] == 1) continue;
    alias = alias && d > last;
    last = d;
  }
  ShapeOut out(y);
  out.alias = alias;
  return out;
}

// x by the order of the result y.
Walk walk_of(const Call& c) {
  return transposed_walk(*c.arg_dim[0], c.out_dim[0], [&](u32 i) { return c.key[1 + i].i; });
}

// Is it, but for dims of 1, the exchange of two groups of dims? Then rows and columns of x as a matrix.
bool as_matrix(const Call& c, idx* rows, idx* cols) {
  const Dim& x = *c.arg_dim[0];
  i32 order[kMaxDims], n = 0;
  for (i32 i = 0; i < c.key[0].i; ++i)
    if (x[static_cast<u32>(c.key[1 + i].i)] != 1) order[n++] = c.key[1 + i].i;
  i32 breaks = 0, first_cut = 0;
  for (i32 i = 1; i < n; ++i)
    if (order[i] < order[i - 1]) {
      ++breaks;
      first_cut = i;
    }
  if (breaks != 1 || order[n - 1] > order[0]) return false;
  *cols = 1;
  for (i32 i = 0; i < first_cut; ++i) *cols *= x[static_cast<u32>(order[i])];
  *rows = static_cast<idx>(x.batch_size()) / *cols;
  return true;
}

void forward(const Call& c) {
  idx rows, cols;
  if (as_matrix(c, &rows, &cols)) {
    for (int m = 0; m < c.members; ++m)
      for (u32 e = 0; e < c.out_dim[0].bd; ++e)
        kernels().transpose(rows, cols, c.x[0][m] + e * rows * cols, c.y[0][m] + e * rows * cols, false);
    return;
  }
  const Walk w = walk_of(c);
  const idx n = w.n(), sx = w.sx();
  for (int m = 0; m < c.members; ++m) {
    const float* x = c.x[0][m];
    float* y = c.y[0][m];
    w.each([&](idx at_x, idx at_y) {
      for (idx i = 0; i < n; ++i) y[at_y + i] = x[at_x + i * sx];
    });
  }
}

void backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const bool acc = c.acc[0];
  idx rows, cols;
  if (as_matrix(c, &rows, &cols)) {
    for (int m = 0; m < c.members; ++m)
      for (u32 e = 0; e < c.out_dim[0].bd; ++e)
        kernels().transpose(cols, rows, c.dy[0][m] + e * rows * cols, c.dx[0][m] + e * rows * cols, acc);
    return;
  }
  const Walk w = walk_of(c);
  const idx n = w.n(), sx = w.sx();
  for (int m = 0; m < c.members; ++m) {
    const float* dy = c.dy[0][m];
    float* dx = c.dx[0][m];
    w.each([&](idx at_x, idx at_y) {
      for (idx i = 0; i < n; ++i) {
        float& to = dx[at_x + i * sx];
        to = acc ? to + dy[at_y + i] : dy[at_y + i];
      }
    });
  }
}

const OpId transpose_id = register_op([](OpDef& op) {
  op.signature = "_transpose(x: expr, dims: ints)";
  op.doc =
      "The dims of x in another order: dim i of the result is dim dims[i] of x.\n\n"
      "{2,3} -> {3,2}; a vector {n} -> {1,n}; dims=(2, 0, 1) takes {a,b,c} to {c,a,b}. ValueError unless dims is a "
      "permutation of all dims.";
  op.args = {{"x"}};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
});

}  // namespace
}  // namespace dnl
