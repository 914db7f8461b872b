// Sums, means and standard deviations: over all elements, over some dims, over the mini-batch, any number of them.
//
// One kernel for all: the result is walked with x, with step 0 along what is summed. Dims that are summed disappear.
// The moments of dynet_lite/ops.py are made of these. Maxima and what else runs along one dim are in along_dim.cc.
#include <cmath>

#include "base/walk.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

Dim reduced_dim(const Dim& x, u32 over) {
  Dim y;
  for (u32 i = 0; i < x.nd; ++i)
    if (!is_reduced(over, i)) y.push(x.d[i]);
  if (y.nd == 0) y.push(1);
  y.bd = over & kBatchBit ? 1 : x.bd;
  return y;
}

constexpr idx kFew = 8;  // numbers: calling a kernel for so many costs more than the work

// Sums in float, each of few numbers.
void short_sums(const Walk& w, const float* x, float* y, idx out) {
  const idx n = w.n();
  kernels().fill(out, 0.f, y);
  if (w.sy() == 0 && n <= kFew)
    w.each([&](idx at_x, idx at_y) {
      for (idx i = 0; i < n; ++i) y[at_y] += x[at_x + i];
    });
  else if (w.sy() == 0)
    w.each([&](idx at_x, idx at_y) { y[at_y] += kernels().sum(n, x + at_x); });
  else
    w.each([&](idx at_x, idx at_y) { kernels().add(n, x + at_x, y + at_y); });
}

// Sums of f(x, place in y) of many numbers in double, so that the error does not grow with their count.
template <class F>
void long_sums(const Walk& w, const float* x, double* y, idx out, F f) {
  const idx n = w.n(), step = w.sy();
  for (idx i = 0; i < out; ++i) y[i] = 0;
  w.each([&](idx at_x, idx at_y) {
    if (step == 0) {
      double sum = 0;
      for (idx i = 0; i < n; ++i) sum += f(x[at_x + i], at_y);
      y[at_y] += sum;
    } else {
      for (idx i = 0; i < n; ++i) y[at_y + i] += f(x[at_x + i], at_y + i);
    }
  });
}

void sum_forward(const Call& c, u32 over, float scale) {
  const Walk w = reduced_walk(*c.arg_dim[0], over);
  const idx out = c.out_size();
  const bool is_long = c.arg_size(0) > 512 * c.out_size() && !(w.one_run() && out == 1);
  double* total = is_long ? c.scratch->array<double>(out) : nullptr;
  for (int m = 0; m < c.members; ++m) {
    const float* x = c.x[0][m];
    float* y = c.y[0][m];
    if (w.one_run() && out == 1) {
      *y = scale * kernels().sum(w.n(), x);
    } else if (is_long) {
      long_sums(w, x, total, out, [](float v, idx) { return static_cast<double>(v); });
      for (idx i = 0; i < out; ++i) y[i] = static_cast<float>(scale * total[i]);
    } else {
      short_sums(w, x, y, out);
      if (scale != 1.f) kernels().scale(out, scale, y);
    }
  }
}

void add_constant(idx n, float v, float* y, bool acc) {
  if (!acc && n > kFew) return kernels().fill(n, v, y);
  for (idx i = 0; i < n; ++i) y[i] = acc ? y[i] + v : v;
}

void sum_backward(const Call& c, u32 over, float scale) {
  if (!c.dx[0].wanted()) return;
  const Walk w = reduced_walk(*c.arg_dim[0], over);
  const idx n = w.n();
  const bool acc = c.acc[0];
  for (int m = 0; m < c.members; ++m) {
    const float* dy = c.dy[0][m];
    float* dx = c.dx[0][m];
    if (w.sy() == 0)
      w.each([&](idx at_x, idx at_y) { add_constant(n, scale * dy[at_y], dx + at_x, acc); });
    else
      w.each([&](idx at_x, idx at_y) { kernels().scale_to(n, scale, dy + at_y, dx + at_x, acc); });
  }
}

// How many numbers of x go into one of y.
float per_output(const Call& c) { return static_cast<float>(c.arg_size(0) / c.out_size()); }

template <u32 kOver>
ShapeOut fixed_shape(const ShapeIn& in) {
  return reduced_dim(in[0], kOver);
}

// ---- everything, or the mini-batch --------------------------------------------------------------

const OpId sum_elems_id = register_op([](OpDef& op) {
  op.signature = "sum_elems(x: expr)";
  op.doc = "Sum of all elements of each batch element: {..} X b -> {1} X b.";
  op.args = {{"x"}};
  op.shape = fixed_shape<kAllDims>;
  op.forward = [](const Call& c) { sum_forward(c, kAllDims, 1.f); };
  op.backward = [](const Call& c) { sum_backward(c, kAllDims, 1.f); };
});

const OpId mean_elems_id = register_op([](OpDef& op) {
  op.signature = "mean_elems(x: expr)";
  op.doc = "Mean of all elements of each batch element: {..} X b -> {1} X b.";
  op.args = {{"x"}};
  op.shape = fixed_shape<kAllDims>;
  op.forward = [](const Call& c) { sum_forward(c, kAllDims, 1.f / per_output(c)); };
  op.backward = [](const Call& c) { sum_backward(c, kAllDims, 1.f / per_output(c)); };
});

const OpId sum_batches_id = register_op([](OpDef& op) {
  op.signature = "sum_batches(x: expr)";
  op.doc = "Sum over the mini-batch: {..} X b -> {..}.";
  op.args = {{"x"}};
  op.shape = fixed_shape<kBatchBit>;
  op.forward = [](const Call& c) { sum_forward(c, kBatchBit, 1.f); };
  op.backward = [](const Call& c) { sum_backward(c, kBatchBit, 1.f); };
});

const OpId mean_batches_id = register_op([](OpDef& op) {
  op.signature = "mean_batches(x: expr)";
  op.doc = "Mean over the mini-batch: {..} X b -> {..}.";
  op.args = {{"x"}};
  op.shape = fixed_shape<kBatchBit>;
  op.forward = [](const Call& c) { sum_forward(c, kBatchBit, 1.f / per_output(c)); };
  op.backward = [](const Call& c) { sum_backward(c, kBatchBit, 1.f / per_output(c)); };
});

// ---- some dims ----------------------------------------------------------------------------------

// Key words: number of dims, the dims, with the batch or not.
u32 over_key(const Word* key) {
  u32 over = key[1 + key[0].i].i ? kBatchBit : 0;
  for (i32 i = 0; i < key[0].i; ++i) over |= 1u << key[1 + i].i;
  return over;
}

ShapeOut dims_shape(const ShapeIn& in) {
  u32 seen = 0;
  for (i32 i = 0; i < in.key[0].i; ++i) {
    const i32 d = in.key[1 + i].i;
    if (d < 0 || d >= static_cast<i32>(in[0].nd)) in.bad("there is no dim " + std::to_string(d));
    in.need(!(seen >> d & 1u), "a dim stands twice in the list");
    seen |= 1u << d;
  }
  return reduced_dim(in[0], over_key(in.key));
}

float divisor(const Call& c) {
  const float n = c.key[2 + c.key[0].i].f;
  return n > 0.f ? n : per_output(c);
}

const OpId sum_dims_id = register_op([](OpDef& op) {
  op.signature = "_sum_dims(x: expr, dims: ints, batch: bool)";
  op.doc = "Sum over dims (and the mini-batch); they disappear, none left gives {1}.";
  op.args = {{"x"}};
  op.function = "sum_dim";
  op.shape = dims_shape;
  op.forward = [](const Call& c) { sum_forward(c, over_key(c.key), 1.f); };
  op.backward = [](const Call& c) { sum_backward(c, over_key(c.key), 1.f); };
});

const OpId mean_dims_id = register_op([](OpDef& op) {
  op.signature = "_mean_dims(x: expr, dims: ints, batch: bool, divisor: float)";
  op.doc =
      "Mean over dims (and the mini-batch); they disappear, none left gives {1}. A divisor above 0 replaces the count.";
  op.args = {{"x"}};
  op.function = "mean_dim";
  op.shape = dims_shape;
  op.forward = [](const Call& c) { sum_forward(c, over_key(c.key), 1.f / divisor(c)); };
  op.backward = [](const Call& c) { sum_backward(c, over_key(c.key), 1.f / divisor(c)); };
});

// ---- standard deviation -------------------------------------------------------------------------

// The mean is kept from forward for backward.
void std_forward(const Call& c) {
  const Walk w = reduced_walk(*c.arg_dim[0], over_key(c.key));
  const idx out = c.out_size();
  const double scale = 1.0 / per_output(c);
  double* total = c.scratch->array<double>(out);
  for (int m = 0; m < c.members; ++m) {
    const float* x = c.x[0][m];
    float *y = c.y[0][m], *mean = c.y[1][m];
    long_sums(w, x, total, out, [](float v, idx) { return static_cast<double>(v); });
    for (idx i = 0; i < out; ++i) mean[i] = static_cast<float>(scale * total[i]);
    long_sums(w, x, total, out, [&](float v, idx i) {
      const double d = static_cast<double>(v) - mean[i];
      return d * d;
    });
    for (idx i = 0; i < out; ++i) y[i] = static_cast<float>(std::sqrt(scale * total[i]));
  }
}

void std_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Walk w = reduced_walk(*c.arg_dim[0], over_key(c.key));
  const idx out = c.out_size(), n = w.n(), step = w.sy();
  const float scale = 1.f / per_output(c);
  float* slope = c.scratch->alloc(out);
  for (int m = 0; m < c.members; ++m) {
    const float *x = c.x[0][m], *y = c.y[0][m], *mean = c.y[1][m], *dy = c.dy[0][m];
    float* dx = c.dx[0][m];
    for (idx i = 0; i < out; ++i) slope[i] = y[i] == 0.f ? 0.f : scale * dy[i] / y[i];
    w.each([&](idx at_x, idx at_y) {
      for (idx i = 0; i < n; ++i) {
        const idx k = at_y + i * step;
        const float d = slope[k] * (x[at_x + i] - mean[k]);
        dx[at_x + i] = c.acc[0] ? dx[at_x + i] + d : d;
      }
    });
  }
}

const OpId std_dims_id = register_op([](OpDef& op) {
  op.signature = "_std_dims(x: expr, dims: ints, batch: bool)";
  op.doc = "Population standard deviation over dims (and the mini-batch); the gradient is 0 where it is 0.";
  op.args = {{"x"}};
  op.function = "std_dim";
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    ShapeOut out = dims_shape(in);
    const Dim mean = out.dim[0];
    return out.hidden(mean);
  };
  op.forward = std_forward;
  op.backward = std_backward;
});

}  // namespace
}  // namespace dnl
