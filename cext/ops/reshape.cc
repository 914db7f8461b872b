// Ops that look at the same memory in another way: reshape, nobackprop. All are aliases, no kernel runs.
#include "op/op.h"

namespace dnl {
namespace {

// Key words: number of dims, the dims (one of them may be -1), batch size.
ShapeOut reshape_shape(const ShapeIn& in) {
  const Dim& x = in[0];
  const i32 n = in.key[0].i, batch = in.key[1 + n].i;
  in.need(n >= 1 && n <= kMaxDims, "the new shape must have 1 to 7 dims");
  in.need(batch >= 1, "the batch size must be positive");
  Dim y;
  y.bd = static_cast<u32>(batch);
  u32 open = kMaxDims;
  std::size_t rest = 1;
  for (i32 i = 0; i < n; ++i) {
    const i32 v = in.key[1 + i].i;
    in.need(v > 0 || (v == -1 && open == kMaxDims), "dims must be positive (one may be -1: what is left)");
    if (v == -1)
      open = y.nd;
    else
      rest *= static_cast<u32>(v);
    in.need(rest <= (std::size_t(1) << 31), "the new shape is too large");
    y.push(v == -1 ? 1 : static_cast<u32>(v));
  }
  if (open < kMaxDims) {
    const std::size_t size = batch == 1 ? x.batch_size() : x.size() / static_cast<u32>(batch);
    in.need(size % rest == 0, "the dim given as -1 does not come out whole");
    y.d[open] = static_cast<u32>(size / rest);
  }
  if (y.size() != x.size()) {
    if (batch != 1 || y.batch_size() != x.batch_size()) in.bad("cannot become " + y.text() + ": sizes differ");
    y.bd = x.bd;
  }
  ShapeOut out(y);
  out.alias = true;
  return out;
}

const OpId reshape_id = register_op([](OpDef& op) {
  op.signature = "reshape(x: expr, d: dims, batch_size: size = 1)";
  op.doc =
      "The same numbers in another shape, column-major, without a copy.\n\n"
      "d is an int or a sequence of ints; one of them may be -1, and is then worked out. The mini-batch may be "
      "folded in ({3} X 4 with d=(3, 4) -> {3,4}) or out ({12} with d=3, batch_size=4 -> {3} X 4). If d fits "
      "the numbers of one batch element and batch_size is 1, the mini-batch is kept. ValueError if the numbers "
      "do not fit.";
  op.args = {{"x"}};
  op.shape = reshape_shape;
  op.in_kernels = true;
});

const OpId nobackprop_id = register_op([](OpDef& op) {
  op.signature = "nobackprop(x: expr)";
  op.doc =
      "x as a constant: no gradient flows back through it.\n\n"
      "Any shape; the result has the same shape.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    ShapeOut out(in[0]);
    out.alias = true;
    return out;
  };
  op.no_grad = true;
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
