// Joining: concatenate along a dim, concatenate_to_batch. Lists of any length; each list length is a signature.
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

// A concatenation as blocks: every argument gives `outer` blocks of `block[j]` contiguous numbers, in turn.
struct Blocks {
  idx outer, row;  // number of blocks of one argument; numbers in one round of blocks
  explicit Blocks(const Call& c) : outer(1), row(0) {
    const Dim& y = c.out_dim[0];
    const u32 d = static_cast<u32>(c.key[0].i);
    for (u32 i = d + 1; i < y.nd; ++i) outer *= y.d[i];
    row = static_cast<idx>(y.batch_size()) / outer;
  }
  idx block(const Call& c, int j) const { return static_cast<idx>(c.arg_dim[j]->batch_size()) / outer; }
};

// A sum of sizes, which must not wrap around before the size of the result is checked.
void need_size(const ShapeIn& in, u64 total) { in.need(total <= u64(1) << 31, "the result is too large"); }

ShapeOut concat_shape(const ShapeIn& in) {
  const i32 d = in.key[0].i;
  in.need(d >= 0 && d < kMaxDims, "the dim must be 0..6");
  Dim y = in[0];
  while (y.nd <= static_cast<u32>(d)) y.push(1);
  u64 total = 0;
  for (int j = 0; j < in.nargs; ++j) {
    for (u32 i = 0; i < kMaxDims; ++i)
      in.need(i == static_cast<u32>(d) || in[j][i] == y[i], "all dims but the joined one must be equal");
    total += in[j][static_cast<u32>(d)];
  }
  need_size(in, total);
  y.d[d] = static_cast<u32>(total);
  y.bd = in.common_batch();
  return y;
}

void concat_forward(const Call& c) {
  const Blocks b(c);
  const u32 batch = c.out_dim[0].bd;
  if (b.outer == 1 && batch == 1) {
    idx at = 0;
    for (int j = 0; j < c.nargs; ++j) {
      const idx n = b.block(c, j);
      kernels().copy_rows(c.members, n, c.x[j], Rows{c.y[0].base + at, c.y[0].stride, nullptr});
      at += n;
    }
    return;
  }
  idx at = 0;
  for (int j = 0; j < c.nargs; ++j) {
    const idx n = b.block(c, j), one = n * b.outer;
    for (int m = 0; m < c.members; ++m)
      for (u32 e = 0; e < batch; ++e) {
        const float* x = c.x[j][m] + (c.arg_dim[j]->bd == 1 ? 0 : e * one);
        float* y = c.y[0][m] + e * b.row * b.outer + at;
        for (idx o = 0; o < b.outer; ++o) copy(n, x + o * n, y + o * b.row);
      }
    at += n;
  }
}

void concat_backward(const Call& c) {
  const Blocks b(c);
  const u32 batch = c.out_dim[0].bd;
  idx at = 0;
  for (int j = 0; j < c.nargs; ++j) {
    const idx n = b.block(c, j), one = n * b.outer;
    if (c.dx[j].wanted()) {
      if (b.outer == 1 && batch == 1) {
        const Rows from{c.dy[0].base + at, c.dy[0].stride, nullptr};
        c.acc[j] ? kernels().add_rows(c.members, n, from, c.dx[j]) : kernels().copy_rows(c.members, n, from, c.dx[j]);
      } else {
        for (int m = 0; m < c.members; ++m)
          for (u32 e = 0; e < batch; ++e) {
            const bool repeated = c.arg_dim[j]->bd == 1;
            float* dx = c.dx[j][m] + (repeated ? 0 : e * one);
            const float* dy = c.dy[0][m] + e * b.row * b.outer + at;
            for (idx o = 0; o < b.outer; ++o)
              kernels().scale_to(n, 1.f, dy + o * b.row, dx + o * n, c.acc[j] || (repeated && e > 0));
          }
      }
    }
    at += n;
  }
}

const OpId concatenate_id = register_op([](OpDef& op) {
  op.signature = "concatenate(xs: exprs, d: int = 0)";
  op.doc =
      "Joins expressions along dim d; with d=0 one above the other.\n\n"
      "{3}, {2} -> {5}; with d=1 {3,1}, {3,4} -> {3,5}. All other dims must be equal, and batch sizes equal or "
      "1. ValueError otherwise, or for an empty list.";
  op.args = {each("xs")};
  op.shape = concat_shape;
  op.forward = concat_forward;
  op.backward = concat_backward;
  op.concatenates = true;
  op.in_kernels = true;
});

const OpId to_batch_id = register_op([](OpDef& op) {
  op.signature = "concatenate_to_batch(xs: exprs)";
  op.doc =
      "Joins expressions of one shape into one mini-batch.\n\n"
      "{..} X b1, {..} X b2, ... -> {..} X (b1 + b2 + ...). ValueError for different shapes or an empty list.";
  op.args = {each("xs")};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    Dim y = in[0];
    u64 total = 0;
    for (int j = 0; j < in.nargs; ++j) {
      in.need(in[j].same_shape(in[0]), "all shapes must be equal");
      total += in[j].bd;
    }
    need_size(in, total);
    y.bd = static_cast<u32>(total);
    return y;
  };
  op.forward = [](const Call& c) {
    idx at = 0;
    for (int j = 0; j < c.nargs; ++j) {
      const idx n = c.arg_size(j);
      kernels().copy_rows(c.members, n, c.x[j], Rows{c.y[0].base + at, c.y[0].stride, nullptr});
      at += n;
    }
  };
  op.backward = [](const Call& c) {
    idx at = 0;
    for (int j = 0; j < c.nargs; ++j) {
      const idx n = c.arg_size(j);
      const Rows from{c.dy[0].base + at, c.dy[0].stride, nullptr};
      if (c.dx[j].wanted())
        c.acc[j] ? kernels().add_rows(c.members, n, from, c.dx[j]) : kernels().copy_rows(c.members, n, from, c.dx[j]);
      at += n;
    }
  };
  op.batches = true;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
