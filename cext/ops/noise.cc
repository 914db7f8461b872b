// Noise on a value: dropout in four grains, and Gaussian noise. Random inputs are in random.cc.
//
// What a node draws depends on its seed alone, so that batching and threads change nothing. Masks are kept as a hidden
// output for the gradient. Probabilities and deviations are per member.
#include "kernels/kernels.h"
#include "op/op.h"

#include <cmath>

namespace dnl {
namespace {

u64 seed_at(const Word* w) { return w[0].u | static_cast<u64>(w[1].u) << 32; }

// The kernels of the product, element by element. Its number is the same in every table.
const BinaryKernel& product() {
  static const int number = [] {
    for (int i = 0; i < kernels().n_binary; ++i)
      if (!std::strcmp(kernels().binary[i].name, "cmult")) return i;
    fail(ErrorKind::Internal, "[dropout] no kernel named cmult");
  }();
  return kernels().binary[number];
}

// Member words of all kinds of dropout: p, seed.
void check_p(const ShapeIn& in, const Word* member) {
  const float p = member[0].f;
  if (!(p >= 0 && p < 1)) in.bad("the probability p must be in [0, 1), is " + std::to_string(p));
}

// A value that is dropped as a whole may always be.
void check_p_of_block(const ShapeIn& in, const Word* member) {
  const float p = member[0].f;
  if (!(p >= 0 && p <= 1)) in.bad("the probability p must be in [0, 1], is " + std::to_string(p));
}

void draw_masks(const Call& c) {
  for (int m = 0; m < c.members; ++m) {
    const float keep = 1.f - c.member[m][0].f, scale = keep > 0 ? 1.f / keep : 0.f;
    kernels().random_mask(static_cast<idx>(c.out_size(1)), seed_at(c.member[m] + 1), keep, scale, c.y[1][m]);
  }
}

// A mask is smaller than the value: f(offset in x, n, offset in the mask) for runs of n numbers; one number of the mask
// for the run, or (each) one for each.
template <class F>
void each_run(const Dim& x, const Dim& mask, F f) {
  // Dims before the one where they differ are common, those after it too, and so on: at most one dim is 1 in the mask.
  const idx size = static_cast<idx>(x.size()), msize = static_cast<idx>(mask.size());
  if (msize == 1) return f(0, size, 0, false);
  u32 d = 0;
  while (d < x.nd && x.d[d] == mask.d[d]) ++d;
  if (d == x.nd) return f(0, size, 0, true);
  idx inner = 1;
  for (u32 i = 0; i < d; ++i) inner *= x.d[i];
  const idx n = x.d[d];
  for (idx o = 0; o < msize / inner; ++o) {
    if (inner == 1)
      f(o * n, n, o, false);
    else
      for (idx k = 0; k < n; ++k) f((o * n + k) * inner, inner, o * inner, true);
  }
}

void mask_forward(const Call& c) {
  draw_masks(c);
  for (int m = 0; m < c.members; ++m) {
    const float *x = c.x[0][m], *mask = c.y[1][m];
    float* y = c.y[0][m];
    each_run(*c.arg_dim[0], c.out_dim[1], [&](idx at, idx n, idx mat, bool each) {
      product().fwd(n, x + at, 1, mask + mat, each ? 1 : 0, y + at, nullptr);
    });
  }
}

void mask_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  for (int m = 0; m < c.members; ++m) {
    const float *x = c.x[0][m], *mask = c.y[1][m], *y = c.y[0][m], *dy = c.dy[0][m];
    float* dx = c.dx[0][m];
    each_run(*c.arg_dim[0], c.out_dim[1], [&](idx at, idx n, idx mat, bool each) {
      product().bwd(n, x + at, 1, mask + mat, each ? 1 : 0, y + at, dy + at, dx + at, c.acc[0], nullptr, true, nullptr);
    });
  }
}

const OpId dropout_id = register_op([](OpDef& op) {
  op.signature = "dropout(x: expr, p: float*, seed: seed)";
  op.doc =
      "Sets each number to 0 with probability p, and divides the others by 1 - p (Srivastava et al., 2014).\n\n"
      "Any shape; the result has the same shape. The mask is drawn anew at each evaluation. ValueError unless 0 "
      "<= p < 1.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return ShapeOut(in[0]).hidden(in[0]); };
  op.forward = mask_forward;
  op.backward = mask_backward;
  op.check = check_p;
  op.in_kernels = true;
});

const OpId dropout_dim_id = register_op([](OpDef& op) {
  op.signature = "dropout_dim(x: expr, d: int, p: float*, seed: seed)";
  op.doc =
      "Dropout of whole lines along dim d: the numbers of a line are dropped or kept together.\n\n"
      "Any shape; the result has the same shape. Of a matrix, d=0 drops columns and d=1 drops rows. The mask is "
      "drawn anew at each evaluation. ValueError unless 0 <= p < 1, or if x has no dim d.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const i32 d = in.key[0].i;
    if (d < 0 || d >= static_cast<i32>(in[0].nd))
      in.bad("the dim d must be 0.." + std::to_string(in[0].nd - 1) + ", is " + std::to_string(d));
    Dim mask = in[0];
    mask.d[d] = 1;
    return ShapeOut(in[0]).hidden(mask);
  };
  op.forward = mask_forward;
  op.backward = mask_backward;
  op.check = check_p;
  op.in_kernels = true;
});

const OpId dropout_batch_id = register_op([](OpDef& op) {
  op.signature = "dropout_batch(x: expr, p: float*, seed: seed)";
  op.doc =
      "Dropout of whole batch elements: the numbers of one are dropped or kept together.\n\n"
      "Any shape; the result has the same shape. The mask is drawn anew at each evaluation. ValueError unless 0 "
      "<= p < 1.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return ShapeOut(in[0]).hidden(Dim({1}, in[0].bd)); };
  op.forward = [](const Call& c) {
    draw_masks(c);
    const idx n = static_cast<idx>(c.out_dim[0].batch_size());
    for (int m = 0; m < c.members; ++m)
      for (u32 e = 0; e < c.out_dim[0].bd; ++e)
        kernels().scale_to(n, c.y[1][m][e], c.x[0][m] + e * n, c.y[0][m] + e * n, false);
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const idx n = static_cast<idx>(c.out_dim[0].batch_size());
    for (int m = 0; m < c.members; ++m)
      for (u32 e = 0; e < c.out_dim[0].bd; ++e)
        kernels().scale_to(n, c.y[1][m][e], c.dy[0][m] + e * n, c.dx[0][m] + e * n, c.acc[0]);
  };
  op.check = check_p;
});

const OpId block_dropout_id = register_op([](OpDef& op) {
  op.signature = "block_dropout(x: expr, p: float*, seed: seed)";
  op.doc =
      "Dropout of everything at once: all numbers of all batch elements are dropped or kept together.\n\n"
      "Any shape; the result has the same shape. Drawn anew at each evaluation; p = 1 gives zeros. ValueError "
      "unless 0 <= p <= 1.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return ShapeOut(in[0]).hidden(Dim({1})); };
  op.forward = mask_forward;
  op.backward = mask_backward;
  op.check = check_p_of_block;
  op.in_kernels = true;
});

// Member words: deviation, seed.
const OpId noise_id = register_op([](OpDef& op) {
  op.signature = "noise(x: expr, stddev: float*, seed: seed)";
  op.doc =
      "x plus Gaussian noise of mean 0 and standard deviation stddev.\n\n"
      "Any shape; the result has the same shape. The noise is drawn anew at each evaluation. ValueError if "
      "stddev is negative or not finite.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return in[0]; };
  op.forward = [](const Call& c) {
    const idx n = static_cast<idx>(c.out_size());
    for (int m = 0; m < c.members; ++m) {
      kernels().random_normal(n, seed_at(c.member[m] + 1), 0.f, c.member[m][0].f, c.y[0][m]);
      kernels().add(n, c.x[0][m], c.y[0][m]);
    }
  };
  op.backward = [](const Call& c) {
    const idx n = static_cast<idx>(c.out_size());
    if (c.dx[0].wanted())
      c.acc[0] ? kernels().add_rows(c.members, n, c.dy[0], c.dx[0])
               : kernels().copy_rows(c.members, n, c.dy[0], c.dx[0]);
  };
  op.check = [](const ShapeIn& in, const Word* member) {
    const float s = member[0].f;
    if (!(s >= 0 && std::isfinite(s))) in.bad("stddev must be a number >= 0, is " + std::to_string(s));
  };
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
