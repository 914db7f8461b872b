// softmax and log_softmax: along any dim; log_softmax also over some of the entries only.
//
// A value is walked as lines: the numbers along dim d, at a distance of `inner`. Lines along the first dim are
// contiguous and go to the kernels as they lie; others are transposed into scratch memory, many lines at once.
#include "kernels/kernels.h"
#include "op/op.h"

#include <limits>

namespace dnl {
namespace {

// One member's value as outer blocks of `inner` lines of n numbers; batch elements are further blocks.
struct Lines {
  idx n, inner = 1, outer;
  Lines(const Dim& x, u32 d) : n(x[d]) {
    for (u32 i = 0; i < d && i < x.nd; ++i) inner *= x.d[i];
    outer = static_cast<idx>(x.size()) / (n * inner);
  }
  idx block() const { return n * inner; }
};

// The dim of key word 0.
u32 dim_of(const Call& c) { return static_cast<u32>(c.key[0].i); }

void check_dim(const ShapeIn& in) {
  const i32 d = in.key[0].i;
  if (d < 0 || d >= static_cast<i32>(in[0].nd))
    in.bad("the dim d must be 0.." + std::to_string(in[0].nd - 1) + ", is " + std::to_string(d));
}

ShapeOut same_shape(const ShapeIn& in) {
  check_dim(in);
  return in[0];
}

using LineForward = void (*)(idx n, const float* x, float* y);
using LineBackward = void (*)(idx n, const float* y, const float* dy, float* dx, bool acc);

// One line each, as long as it is: the weights of sources of different lengths.
bool line_of_any_length(const ShapeIn& in, const bool*, Dim* arg) {
  const Dim& x = in[0];
  const u32 d = in.key[0].u;
  if (x.bd != 1 || x.size() != x[d]) return false;
  arg[0].d[d] = 0;
  return true;
}

void lines_forward(const Call& c, LineForward f) {
  const Lines l(*c.arg_dim[0], dim_of(c));
  if (c.dims) {
    for (int m = 0; m < c.members; ++m) f(static_cast<idx>(c.out(m).size()), c.x[0][m], c.y[0][m]);
    return;
  }
  if (l.inner == 1) {
    for (int m = 0; m < c.members; ++m)
      for (idx o = 0; o < l.outer; ++o) f(l.n, c.x[0][m] + o * l.n, c.y[0][m] + o * l.n);
    return;
  }
  float* t__in = c.scratch->alloc(l.block());  // lines side by side
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < l.outer; ++o) {
      kernels().transpose(l.inner, l.n, c.x[0][m] + o * l.block(), t__in, false);
      for (idx i = 0; i < l.inner; ++i) f(l.n, t__in + i * l.n, t__in + i * l.n);
      kernels().transpose(l.n, l.inner, t__in, c.y[0][m] + o * l.block(), false);
    }
}

void lines_backward(const Call& c, LineBackward f) {
  if (!c.dx[0].wanted()) return;
  const Lines l(*c.arg_dim[0], dim_of(c));
  if (c.dims) {
    for (int m = 0; m < c.members; ++m)
      f(static_cast<idx>(c.out(m).size()), c.y[0][m], c.dy[0][m], c.dx[0][m], c.acc[0]);
    return;
  }
  if (l.inner == 1) {
    for (int m = 0; m < c.members; ++m)
      for (idx o = 0; o < l.outer; ++o)
        f(l.n, c.y[0][m] + o * l.n, c.dy[0][m] + o * l.n, c.dx[0][m] + o * l.n, c.acc[0]);
    return;
  }
  float* y__in = c.scratch->alloc(l.block());
  float* dy__in = c.scratch->alloc(l.block());
  float* dx__in = c.scratch->alloc(l.block());
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < l.outer; ++o) {
      kernels().transpose(l.inner, l.n, c.y[0][m] + o * l.block(), y__in, false);
      kernels().transpose(l.inner, l.n, c.dy[0][m] + o * l.block(), dy__in, false);
      for (idx i = 0; i < l.inner; ++i) f(l.n, y__in + i * l.n, dy__in + i * l.n, dx__in + i * l.n, false);
      kernels().transpose(l.n, l.inner, dx__in, c.dx[0][m] + o * l.block(), c.acc[0]);
    }
}

const OpId softmax_id = register_op([](OpDef& op) {
  op.signature = "softmax(x: expr, d: int = 0)";
  op.doc =
      "Softmax along dim d: exp(x) divided by its sum.\n\n"
      "Any shape; the result has the same shape. Entries of -inf become 0; a line that has nothing else becomes "
      "zeros. ValueError if x has no dim d.";
  op.args = {{"x"}};
  op.shape = same_shape;
  op.forward = [](const Call& c) { lines_forward(c, kernels().softmax); };
  op.backward = [](const Call& c) { lines_backward(c, kernels().softmax_bwd); };
  op.ragged = line_of_any_length;
  op.in_kernels = true;
});

const OpId log_softmax_id = register_op([](OpDef& op) {
  op.signature = "log_softmax(x: expr, d: int = 0)";
  op.doc =
      "Logarithm of the softmax along dim d: x - logsumexp(x).\n\n"
      "Any shape; the result has the same shape. Entries of -inf stay -inf. ValueError if x has no dim d.";
  op.args = {{"x"}};
  op.shape = same_shape;
  op.forward = [](const Call& c) { lines_forward(c, kernels().log_softmax); };
  op.backward = [](const Call& c) { lines_backward(c, kernels().log_softmax_bwd); };
  op.ragged = line_of_any_length;
  op.in_kernels = true;
});

// ---- over some entries only ----------------------------------------------------------------------------------

// Member words: number of ids, then the ids, ascending.
void check_restrict(const ShapeIn& in, const Word* member) {
  if (member[0].u == 0) in.bad("restrict needs at least one id");
  for (u32 k = 0; k < member[0].u; ++k) {
    const i32 id = member[1 + k].i;
    if (id < 0 || id >= static_cast<i32>(in[0].rows()))
      fail_index("[log_softmax] restrict: id " + std::to_string(id) + " is out of range for " + in[0].text());
    if (k && id <= member[k].i) in.bad("restrict: ids must be ascending");
  }
}

void restricted_forward(const Call& c) {
  const idx n = c.arg_dim[0]->rows(), lines = static_cast<idx>(c.out_size()) / n;
  float* part = c.scratch->alloc(n);
  for (int m = 0; m < c.members; ++m) {
    const Word* ids = c.member[m] + 1;
    const idx k = c.member[m][0].i;
    for (idx o = 0; o < lines; ++o) {
      const float* x = c.x[0][m] + o * n;
      float* y = c.y[0][m] + o * n;
      for (idx i = 0; i < k; ++i) part[i] = x[ids[i].i];
      kernels().log_softmax(k, part, part);
      kernels().fill(n, -std::numeric_limits<float>::infinity(), y);
      for (idx i = 0; i < k; ++i) y[ids[i].i] = part[i];
    }
  }
}

void restricted_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const idx n = c.arg_dim[0]->rows(), lines = static_cast<idx>(c.out_size()) / n;
  float *y = c.scratch->alloc(n), *dy = c.scratch->alloc(n), *dx = c.scratch->alloc(n);
  for (int m = 0; m < c.members; ++m) {
    const Word* ids = c.member[m] + 1;
    const idx k = c.member[m][0].i;
    for (idx o = 0; o < lines; ++o) {
      const idx at = o * n;
      for (idx i = 0; i < k; ++i) {
        y[i] = c.y[0][m][at + ids[i].i];
        dy[i] = c.dy[0][m][at + ids[i].i];
      }
      kernels().log_softmax_bwd(k, y, dy, dx, false);
      float* to = c.dx[0][m] + at;
      if (!c.acc[0]) kernels().fill(n, 0.f, to);
      for (idx i = 0; i < k; ++i) to[ids[i].i] += dx[i];
    }
  }
}

const OpId restricted_id = register_op([](OpDef& op) {
  op.signature = "_log_softmax_restricted(x: expr, restrict: ints*)";
  op.doc = "log_softmax along the first dim over the entries `restrict` (ascending); -inf and no gradient elsewhere.";
  op.args = {{"x"}};
  op.function = "log_softmax";
  op.shape = [](const ShapeIn& in) -> ShapeOut { return in[0]; };
  op.forward = restricted_forward;
  op.backward = restricted_backward;
  op.check = check_restrict;
  op.leaves_out = true;
});

}  // namespace
}  // namespace dnl
