// Ranges: pick_range along one dim, and slices with steps along all dims and the mini-batch.
//
// Where a range begins is a member attribute, so that ranges of one length run as one batch wherever they begin. What
// lies in one piece is an alias.
#include "base/walk.h"
#include "kernels/kernels.h"
#include "op/called.h"
#include "op/op.h"

namespace dnl {
namespace {

// A slice of x: the walk over it (y is packed) and where it begins. Position nd of the lists is the mini-batch.
struct Slice {
  Walk walk;
  idx at = 0;  // of the first number in x
  void push(const Dim& x, u32 i, idx start, idx step, idx count, idx* sx, idx* sy) {
    at += start * *sx;
    walk.push(count, step * *sx, *sy);
    *sx *= i < x.nd ? x.d[i] : x.bd;
    *sy *= count;
  }
  bool contiguous() const { return walk.one_run() && walk.sx() == 1; }
};

void slice_forward(const Call& c, Slice (*make)(const Dim&, const Word*, const Word*)) {
  for (int m = 0; m < c.members; ++m) {
    const Slice s = make(*c.arg_dim[0], c.key, c.member[m]);
    const idx n = s.walk.n(), sx = s.walk.sx();
    const float* x = c.x[0][m] + s.at;
    float* y = c.y[0][m];
    s.walk.each([&](idx at_x, idx at_y) {
      if (sx == 1 && n > 4) {
        std::memcpy(y + at_y, x + at_x, n * sizeof(float));
      } else {
        for (idx i = 0; i < n; ++i) y[at_y + i] = x[at_x + i * sx];
      }
    });
  }
}

void slice_backward(const Call& c, Slice (*make)(const Dim&, const Word*, const Word*)) {
  if (!c.dx[0].wanted()) return;
  for (int m = 0; m < c.members; ++m) {
    const Slice s = make(*c.arg_dim[0], c.key, c.member[m]);
    const idx n = s.walk.n(), sx = s.walk.sx();
    if (!c.acc[0]) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
    float* dx = c.dx[0][m] + s.at;
    const float* dy = c.dy[0][m];
    s.walk.each([&](idx at_x, idx at_y) {
      for (idx i = 0; i < n; ++i) dx[at_x + i * sx] += dy[at_y + i];
    });
  }
}

// ---- a range along one dim -----------------------------------------------------------------------------------------

// Key words: length, dim. Member word: start.
Slice make_range(const Dim& x, const Word* key, const Word* member) {
  Slice s;
  idx sx = 1, sy = 1;
  for (u32 i = 0; i <= x.nd; ++i) {
    const bool cut = i == key[1].u;
    s.push(x, i, cut ? member[0].i : 0, 1, cut ? key[0].i : i < x.nd ? x.d[i] : x.bd, &sx, &sy);
  }
  return s;
}

const Word kFromZero[1] = {{0}};

const OpId pick_range_id = register_op([](OpDef& op) {
  op.signature = "_pick_range(x: expr, start: int*, n: int, d: int)";
  op.doc = "Elements start..start+n-1 along dim d.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const i32 n = in.key[0].i;
    const u32 d = in.dim_at(1);
    in.need(n > 0, "the range is empty");
    if (static_cast<u32>(n) > in[0].d[d])
      fail_index("[pick_range] a range of " + std::to_string(n) + " in dim " + std::to_string(d) + " of " +
                 in[0].text());
    ShapeOut out(in[0]);
    out.dim[0].d[d] = static_cast<u32>(n);
    out.alias = make_range(in[0], in.key, kFromZero).contiguous();
    return out;
  };
  op.forward = [](const Call& c) { slice_forward(c, make_range); };
  op.backward = [](const Call& c) { slice_backward(c, make_range); };
  op.check = [](const ShapeIn& in, const Word* member) {
    const i64 from = member[0].i, to = from + in.key[0].i;
    if (from < 0 || to > in[0].d[in.key[1].i])
      fail_index("[pick_range] range " + std::to_string(from) + ".." + std::to_string(to) +
                 " is out of range for dim " + std::to_string(in.key[1].i) + " of " + in[0].text());
  };
  op.alias_offset = [](const ShapeIn& in, const Word* member) {
    return static_cast<std::size_t>(make_range(in[0], in.key, member).at);
  };
});

// ---- slices -------------------------------------------------------------------------------------

// Key words: number of positions k, k steps, k, k counts. Member words: k, k starts.
Slice make_slice(const Dim& x, const Word* key, const Word* member) {
  Slice s;
  idx sx = 1, sy = 1;
  const u32 k = key[0].u;
  for (u32 i = 0; i <= x.nd; ++i) {
    if (i < k)
      s.push(x, i, member ? member[1 + i].i : 0, key[1 + i].i, key[2 + k + i].i, &sx, &sy);
    else
      s.push(x, i, 0, 1, i < x.nd ? x.d[i] : x.bd, &sx, &sy);
  }
  return s;
}

const OpId slice_id = register_op([](OpDef& op) {
  op.signature = "_slice(x: expr, start: index*, step: ints, count: ints)";
  op.doc =
      "count[i] elements along dim i, from start[i] on in steps of step[i] (which may be negative); the position after "
      "the "
      "last dim is the mini-batch; dims that are not named stay whole.";
  op.args = {{"x"}};
  op.function = "strided_select";
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 k = in.key[0].u;
    in.need(k <= in[0].nd + 1 && in.key[1 + k].u == k, "needs one step and one count per dim (and one for the batch)");
    Dim y = in[0];
    for (u32 i = 0; i < k; ++i) {
      const i32 count = in.key[2 + k + i].i;
      in.need(in.key[1 + i].i != 0, "a step must not be 0");
      in.need(count > 0, "the slice is empty");
      (i < y.nd ? y.d[i] : y.bd) = static_cast<u32>(count);
    }
    ShapeOut out(y);
    out.alias = make_slice(in[0], in.key, nullptr).contiguous();
    return out;
  };
  op.forward = [](const Call& c) { slice_forward(c, make_slice); };
  op.backward = [](const Call& c) { slice_backward(c, make_slice); };
  op.check = [](const ShapeIn& in, const Word* member) {
    const u32 k = in.key[0].u;
    in.need(member[0].u == k, "needs one start per step");
    for (u32 i = 0; i < k; ++i) {
      const i64 first = member[1 + i].i, last = first + static_cast<i64>(in.key[1 + i].i) * (in.key[2 + k + i].i - 1);
      const i64 n = i < in[0].nd ? in[0].d[i] : in[0].bd;
      if (first < 0 || first >= n || last < 0 || last >= n)
        fail_index("[" + called(in) + "] elements " + std::to_string(first) + ".." + std::to_string(last) +
                   " at position " + std::to_string(i) + " are out of range for " + in[0].text());
    }
  };
  op.alias_offset = [](const ShapeIn& in, const Word* member) {
    return static_cast<std::size_t>(make_slice(in[0], in.key, member).at);
  };
});

}  // namespace
}  // namespace dnl
