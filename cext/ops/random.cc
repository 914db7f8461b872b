// Random inputs: nodes without arguments whose numbers are drawn anew at each evaluation.
//
// What a node draws depends on its seed alone. Shapes are key attributes, the distributions' parameters are per member.
#include "kernels/kernels.h"
#include "op/op.h"

#include <cmath>

namespace dnl {
namespace {

// Key words: number of dims, the dims, the batch size.
ShapeOut shape(const ShapeIn& in) {
  const u32 nd = in.key[0].u;
  in.need(nd >= 1 && nd <= static_cast<u32>(kMaxDims), "needs 1 to 7 dims");
  Dim y;
  double size = 1;
  for (u32 i = 0; i <= nd; ++i) {
    const i32 v = in.key[1 + i].i;
    in.need(v > 0, i < nd ? "dims must be positive" : "the batch size must be positive");
    size *= v;
    if (i < nd)
      y.push(static_cast<u32>(v));
    else
      y.bd = static_cast<u32>(v);
  }
  in.need(size <= 2147483648.0, "the shape is too large");
  return y;
}

// Member words: two numbers, then the seed.
u64 seed_at(const Word* w) { return w[0].u | static_cast<u64>(w[1].u) << 32; }

using Draw = void (*)(idx n, u64 seed, float a, float b, float* y);

template <Draw draw>
void forward(const Call& c) {
  for (int m = 0; m < c.members; ++m) {
    const Word* w = c.member[m];
    draw(static_cast<idx>(c.out_size()), seed_at(w + 2), w[0].f, w[1].f, c.y[0][m]);
  }
}

void need(const ShapeIn& in, bool ok, const char* what, const Word* w) {
  if (!ok) in.bad(std::string(what) + "; got " + std::to_string(w[0].f) + ", " + std::to_string(w[1].f));
}

void normal(idx n, u64 seed, float a, float b, float* y) { kernels().random_normal(n, seed, a, b, y); }
void uniform(idx n, u64 seed, float a, float b, float* y) { kernels().random_uniform(n, seed, a, b, y); }
void mask(idx n, u64 seed, float a, float b, float* y) { kernels().random_mask(n, seed, a, b, y); }

// -log(-log(u)) from uniform numbers; u is kept inside (0, 1).
void gumbel(idx n, u64 seed, float mu, float beta, float* y) {
  kernels().random_uniform(n, seed, 0.f, 1.f, y);
  for (idx i = 0; i < n; ++i) {
    const double u = y[i] + 0x1p-26;  // uniform numbers are multiples of 2^-24 or finer, from 0 on
    y[i] = static_cast<float>(mu - beta * std::log(-std::log(u < 1 ? u : 1 - 0x1p-26)));
  }
}

const OpId normal_id = register_op([](OpDef& op) {
  op.signature = "random_normal(dim: dims, mean: float* = 0.0, stddev: float* = 1.0, batch_size: size = 1, seed: seed)";
  op.doc =
      "Normally distributed numbers of shape dim.\n\n"
      "They are drawn anew at each evaluation. ValueError if stddev is negative, or mean or stddev not finite.";
  op.args = {};
  op.shape = shape;
  op.forward = forward<normal>;
  op.check = [](const ShapeIn& in, const Word* w) {
    need(in, std::isfinite(w[0].f) && w[1].f >= 0 && std::isfinite(w[1].f), "needs finite mean and stddev >= 0", w);
  };
  op.in_kernels = true;
});

const OpId uniform_id = register_op([](OpDef& op) {
  op.signature = "random_uniform(dim: dims, left: float*, right: float*, batch_size: size = 1, seed: seed)";
  op.doc =
      "Numbers from the uniform distribution over [left, right), of shape dim.\n\n"
      "They are drawn anew at each evaluation. ValueError unless left <= right and right - left is finite.";
  op.args = {};
  op.shape = shape;
  op.forward = forward<uniform>;
  op.check = [](const ShapeIn& in, const Word* w) {
    need(in, w[0].f <= w[1].f && std::isfinite(w[1].f - w[0].f), "needs left <= right, and a finite right - left", w);
  };
  op.in_kernels = true;
});

const OpId bernoulli_id = register_op([](OpDef& op) {
  op.signature = "random_bernoulli(dim: dims, p: float*, scale: float* = 1.0, batch_size: size = 1, seed: seed)";
  op.doc =
      "Numbers of shape dim, each of which is `scale` with probability p and 0 otherwise.\n\n"
      "They are drawn anew at each evaluation. ValueError unless 0 <= p <= 1.";
  op.args = {};
  op.shape = shape;
  op.forward = forward<mask>;
  op.check = [](const ShapeIn& in, const Word* w) {
    need(in, w[0].f >= 0 && w[0].f <= 1, "needs 0 <= p <= 1 and a scale", w);
  };
  op.in_kernels = true;
});

const OpId gumbel_id = register_op([](OpDef& op) {
  op.signature = "random_gumbel(dim: dims, mu: float* = 0.0, beta: float* = 1.0, batch_size: size = 1, seed: seed)";
  op.doc =
      "Numbers of shape dim from the Gumbel distribution: mu - beta log(-log(u)), with u uniform in (0, 1).\n\n"
      "They are drawn anew at each evaluation. Added to log-probabilities, they make the largest entry a "
      "sample. ValueError if beta is negative, or mu or beta not finite.";
  op.args = {};
  op.shape = shape;
  op.forward = forward<gumbel>;
  op.check = [](const ShapeIn& in, const Word* w) {
    need(in, std::isfinite(w[0].f) && w[1].f >= 0 && std::isfinite(w[1].f), "needs finite mu and beta >= 0", w);
  };
});

}  // namespace
}  // namespace dnl
