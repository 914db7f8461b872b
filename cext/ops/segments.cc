// Sums and maxima by segment: of the columns of a matrix, by a number for each; and of the first few of a list, in one
// signature however many they are (dynet_lite/ops_segment.py makes trees of these).
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "op/called.h"
#include "op/op.h"

namespace dnl {
namespace {

// ---- the first n of a list ----------------------------------------------------------------------
// Member words: n, and for sums a factor.

ShapeOut some_shape(const ShapeIn& in) {
  for (int j = 1; j < in.nargs; ++j) in.need(in[j] == in[0], "all shapes and batch sizes must be equal");
  return in[0];
}

void check_some(const ShapeIn& in, const Word* member) {
  in.need(member[0].i >= 1 && member[0].i <= in.nargs, "needs a number of arguments that are there");
}

void clear_rest(const Call& c, int m) {
  const idx n = static_cast<idx>(c.out_size());
  for (int j = c.member[m][0].i; j < c.nargs; ++j)
    if (c.dx[j].wanted() && !c.acc[j]) kernels().fill(n, 0.f, c.dx[j][m]);
}

const OpId sum_some_id = register_op([](OpDef& op) {
  op.signature = "_sum_some(xs: exprs, n: int*, factor: float*)";
  op.doc = "factor times the sum of the first n of a list of expressions of one shape; the others are not read.";
  op.args = {each("xs")};
  op.shape = some_shape;
  op.forward = [](const Call& c) {
    for (int m = 0; m < c.members; ++m)
      for (int j = 0; j < c.member[m][0].i; ++j)
        kernels().scale_to(static_cast<idx>(c.out_size()), c.member[m][1].f, c.x[j][m], c.y[0][m], j > 0);
  };
  op.backward = [](const Call& c) {
    for (int m = 0; m < c.members; ++m) {
      for (int j = 0; j < c.member[m][0].i; ++j)
        if (c.dx[j].wanted())
          kernels().scale_to(static_cast<idx>(c.out_size()), c.member[m][1].f, c.dy[0][m], c.dx[j][m], c.acc[j]);
      clear_rest(c, m);
    }
  };
  op.check = check_some;
  op.in_kernels = true;
});

// What is larger; NaN is.
float larger(float x, float y) { return x > y || x != x ? x : y; }

const OpId max_some_id = register_op([](OpDef& op) {
  op.signature = "_max_some(xs: exprs, n: int*)";
  op.doc =
      "The largest of the first n of a list of expressions of one shape, element by element; the others are not read.";
  op.args = {each("xs")};
  op.shape = some_shape;
  op.forward = [](const Call& c) {
    const idx n = static_cast<idx>(c.out_size());
    for (int m = 0; m < c.members; ++m) {
      float* y = c.y[0][m];
      std::memcpy(y, c.x[0][m], n * sizeof(float));
      for (int j = 1; j < c.member[m][0].i; ++j)
        for (idx i = 0; i < n; ++i) y[i] = larger(c.x[j][m][i], y[i]);
    }
  };
  // The first of equal ones gets the gradient.
  op.backward = [](const Call& c) {
    const idx n = static_cast<idx>(c.out_size());
    float* rest = c.scratch->alloc(n);  // what no argument has taken yet
    for (int m = 0; m < c.members; ++m) {
      const float* y = c.y[0][m];
      std::memcpy(rest, c.dy[0][m], n * sizeof(float));
      for (int j = 0; j < c.member[m][0].i; ++j) {
        const float* x = c.x[j][m];
        float* dx = c.dx[j].wanted() ? c.dx[j][m] : nullptr;
        for (idx i = 0; i < n; ++i) {
          const float d = x[i] == y[i] ? rest[i] : 0.f;
          if (x[i] == y[i]) rest[i] = 0.f;
          if (dx) dx[i] = c.acc[j] ? dx[i] + d : d;
        }
      }
      clear_rest(c, m);
    }
  };
  op.check = check_some;
});

// ---- along the last dim -------------------------------------------------------------------------
// Key words: number of segments, and for sums whether they are means. Member words: ids[N].

u32 last_dim(const Dim& d) { return d.d[d.nd - 1]; }

ShapeOut along_shape(const ShapeIn& in) {
  in.need(in[0].nd > 0, "needs at least one dim");
  in.need(in.key[0].i > 0, "needs at least one segment");
  Dim y = in[0];
  y.d[y.nd - 1] = in.key[0].u;
  return y;
}

void check_ids(const ShapeIn& in, const Word* member) {
  const u32 n = last_dim(in[0]);
  if (member[0].u != n) in.bad("needs " + std::to_string(n) + " ids, got " + std::to_string(member[0].u));
  for (u32 k = 1; k <= n; ++k)
    if (member[k].i < 0 || member[k].i >= in.key[0].i)
      fail_index("[" + called(in) + "] id " + std::to_string(member[k].i) + " is out of range for " +
                 std::to_string(in.key[0].i) + " segments");
}

void check_none_empty(const ShapeIn& in, const Word* member) {
  check_ids(in, member);
  std::vector<bool> seen(in.key[0].u);
  for (u32 k = 1; k <= member[0].u; ++k) seen[member[k].u] = true;
  for (u32 s = 0; s < in.key[0].u; ++s)
    if (!seen[s]) in.bad("segment " + std::to_string(s) + " is empty: it has no largest");
}

// Sizes of one call: N columns of `inner` numbers, `outer` times (batch elements), go to `segments`.
struct Columns {
  idx inner, n, segments, outer;
  explicit Columns(const Call& c) : n(last_dim(*c.arg_dim[0])), segments(c.key[0].i), outer(c.arg_dim[0]->bd) {
    inner = static_cast<idx>(c.out_dim[0].batch_size()) / segments;
  }
};

// What a column is multiplied by: 1, or for means 1 over the size of its segment.
const float* factors(const Call& c, const Columns& s, int m, float* of) {
  kernels().fill(s.segments, c.key[1].i ? 0.f : 1.f, of);
  if (!c.key[1].i) return of;
  const Word* ids = c.member[m] + 1;
  for (idx k = 0; k < s.n; ++k) of[ids[k].i] += 1.f;
  for (idx i = 0; i < s.segments; ++i) of[i] = 1.f / (of[i] == 0.f ? 1.f : of[i]);
  return of;
}

const OpId segment_sum_id = register_op([](OpDef& op) {
  op.signature = "_segment_sum(x: expr, ids: index*, n: int, mean: bool)";
  op.doc = "Sums, or means, of the elements along the last dim that have one id, 0 to n - 1.";
  op.args = {{"x"}};
  op.text = [](int, const Word* key, bool) -> std::string { return key[1].i ? "segment_mean" : "segment_sum"; };
  op.family = "segment_sum, segment_mean";
  op.shape = along_shape;
  op.forward = [](const Call& c) {
    const Columns s(c);
    float* space = c.scratch->alloc(static_cast<std::size_t>(s.segments));
    for (int m = 0; m < c.members; ++m) {
      const Word* ids = c.member[m] + 1;
      const float* of = factors(c, s, m, space);
      kernels().fill(static_cast<idx>(c.out_size()), 0.f, c.y[0][m]);
      for (idx e = 0; e < s.outer; ++e)
        for (idx k = 0; k < s.n; ++k)
          kernels().scale_to(s.inner, of[ids[k].i], c.x[0][m] + (e * s.n + k) * s.inner,
                             c.y[0][m] + (e * s.segments + ids[k].i) * s.inner, true);
    }
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const Columns s(c);
    float* space = c.scratch->alloc(static_cast<std::size_t>(s.segments));
    for (int m = 0; m < c.members; ++m) {
      const Word* ids = c.member[m] + 1;
      const float* of = factors(c, s, m, space);
      for (idx e = 0; e < s.outer; ++e)
        for (idx k = 0; k < s.n; ++k)
          kernels().scale_to(s.inner, of[ids[k].i], c.dy[0][m] + (e * s.segments + ids[k].i) * s.inner,
                             c.dx[0][m] + (e * s.n + k) * s.inner, c.acc[0]);
    }
  };
  op.check = check_ids;
});

const OpId segment_max_id = register_op([](OpDef& op) {
  op.signature = "_segment_max(x: expr, ids: index*, n: int)";
  op.doc =
      "The largest, number by number, of the elements along the last dim that have one id, 0 to n - 1; none may be "
      "without.";
  op.args = {{"x"}};
  op.shape = along_shape;
  op.forward = [](const Call& c) {
    const Columns s(c);
    for (int m = 0; m < c.members; ++m) {
      const Word* ids = c.member[m] + 1;
      kernels().fill(static_cast<idx>(c.out_size()), -std::numeric_limits<float>::infinity(), c.y[0][m]);
      for (idx e = 0; e < s.outer; ++e)
        for (idx k = 0; k < s.n; ++k) {
          const float* x = c.x[0][m] + (e * s.n + k) * s.inner;
          float* y = c.y[0][m] + (e * s.segments + ids[k].i) * s.inner;
          for (idx i = 0; i < s.inner; ++i) y[i] = larger(x[i], y[i]);
        }
    }
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const Columns s(c);
    float* rest = c.scratch->alloc(c.out_size());  // what no column has taken yet
    for (int m = 0; m < c.members; ++m) {
      const Word* ids = c.member[m] + 1;
      std::memcpy(rest, c.dy[0][m], c.out_size() * sizeof(float));
      for (idx e = 0; e < s.outer; ++e)
        for (idx k = 0; k < s.n; ++k) {
          const idx from = (e * s.n + k) * s.inner, to = (e * s.segments + ids[k].i) * s.inner;
          for (idx i = 0; i < s.inner; ++i) {
            const bool mine = c.x[0][m][from + i] == c.y[0][m][to + i];
            const float d = mine ? rest[to + i] : 0.f;
            if (mine) rest[to + i] = 0.f;
            float& dx = c.dx[0][m][from + i];
            dx = c.acc[0] ? dx + d : d;
          }
        }
    }
  };
  op.check = check_none_empty;
});

}  // namespace
}  // namespace dnl
