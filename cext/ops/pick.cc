// Choosing by index: pick, pick_batch, select along a dim, elements of the mini-batch.
//
// Indices are member attributes, so that picks of different places run as one batch; negative ones count from the end.
// Results that lie in one piece are aliases. Ranges are in slice.cc.
#include "base/walk.h"
#include "kernels/kernels.h"
#include "op/called.h"
#include "op/op.h"

namespace dnl {
namespace {

idx wrapped(i32 i, idx n) { return i < 0 ? i + n : i; }

void check_index(const ShapeIn& in, i32 i, u32 n) {
  const idx at = wrapped(i, n);
  if (at < 0 || at >= static_cast<idx>(n))
    fail_index("[" + called(in) + "] index " + std::to_string(i) + " is out of range for " + in[0].text());
}

void check_list(const ShapeIn& in, const Word* member, u32 wanted, u32 n) {
  if (member[0].u != wanted) in.bad("needs " + std::to_string(wanted) + " indices, got " + std::to_string(member[0].u));
  for (u32 k = 0; k < wanted; ++k) check_index(in, member[1 + k].i, n);
}

void copy_few(idx n, const float* from, float* to) {
  if (n == 1)
    *to = *from;
  else
    std::memcpy(to, from, n * sizeof(float));
}
void add(idx n, const float* from, float* to) {
  if (n == 1)
    *to += *from;
  else
    kernels().add(n, from, to);
}
void clear_unless_added(const Call& c, int m) {
  if (!c.acc[0]) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
}

// ---- one index -----------------------------------------------------------------------------------------------------

ShapeOut pick_shape(const ShapeIn& in) {
  const u32 d = in.dim_at(0);
  Dim y = in[0];
  y.remove(d);
  ShapeOut out(y);
  out.alias = Axis(in[0], d).outer == 1;
  return out;
}

void pick_forward(const Call& c) {
  const Axis a(*c.arg_dim[0], c.key[0].u);
  for (int m = 0; m < c.members; ++m) {
    const float* x = c.x[0][m] + wrapped(c.member[m][0].i, a.n) * a.inner;
    for (idx o = 0; o < a.outer; ++o) copy_few(a.inner, x + o * a.n * a.inner, c.y[0][m] + o * a.inner);
  }
}

void pick_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Axis a(*c.arg_dim[0], c.key[0].u);
  for (int m = 0; m < c.members; ++m) {
    clear_unless_added(c, m);
    float* dx = c.dx[0][m] + wrapped(c.member[m][0].i, a.n) * a.inner;
    for (idx o = 0; o < a.outer; ++o) add(a.inner, c.dy[0][m] + o * a.inner, dx + o * a.n * a.inner);
  }
}

const OpId pick_id = register_op([](OpDef& op) {
  op.signature = "_pick(x: expr, index: int*, dim: int)";
  op.doc = "Element `index` along dim, which is removed; the same of every batch element.";
  op.args = {{"x"}};
  op.shape = pick_shape;
  op.forward = pick_forward;
  op.backward = pick_backward;
  op.check = [](const ShapeIn& in, const Word* member) { check_index(in, member[0].i, in[0][in.key[0].u]); };
  op.alias_offset = [](const ShapeIn& in, const Word* member) -> std::size_t {
    const Axis a(in[0], in.key[0].u);
    return static_cast<std::size_t>(wrapped(member[0].i, a.n) * a.inner);
  };
});

// ---- one index for each batch element -----------------------------------------------------------

// Key words: dim, number of indices. The batch sizes of x and of the indices must be equal or 1.
ShapeOut pick_batch_shape(const ShapeIn& in) {
  const u32 d = in.dim_at(0), n = in.key[1].u;
  in.need(n > 0, "needs at least one index");
  in.need(n == 1 || in[0].bd == 1 || in[0].bd == n, "needs one index per batch element");
  Dim y = in[0];
  y.remove(d);
  y.bd = n == 1 ? in[0].bd : n;
  return y;
}

// f(offset in x, offset in y) of every block of `inner` numbers of member m.
template <class F>
void each_picked(const Call& c, const Axis& a, int m, F f) {
  const idx batch = c.out_dim[0].bd, xb = c.arg_dim[0]->bd, outer = a.outer / xb, n = c.key[1].i;
  for (idx e = 0; e < batch; ++e) {
    const idx at = wrapped(c.member[m][1 + (n == 1 ? 0 : e)].i, a.n), item = xb == 1 ? 0 : e;
    for (idx o = 0; o < outer; ++o) f(((item * outer + o) * a.n + at) * a.inner, (e * outer + o) * a.inner);
  }
}

const OpId pick_batch_id = register_op([](OpDef& op) {
  op.signature = "_pick_batch(x: expr, indices: index*, dim: int, n: int)";
  op.doc = "Element indices[e] along dim, which is removed, of batch element e. n is the number of indices.";
  op.args = {{"x"}};
  op.shape = pick_batch_shape;
  op.forward = [](const Call& c) {
    const Axis a(*c.arg_dim[0], c.key[0].u);
    for (int m = 0; m < c.members; ++m)
      each_picked(c, a, m, [&](idx x, idx y) { copy_few(a.inner, c.x[0][m] + x, c.y[0][m] + y); });
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const Axis a(*c.arg_dim[0], c.key[0].u);
    for (int m = 0; m < c.members; ++m) {
      clear_unless_added(c, m);
      each_picked(c, a, m, [&](idx x, idx y) { add(a.inner, c.dy[0][m] + y, c.dx[0][m] + x); });
    }
  };
  op.check = [](const ShapeIn& in, const Word* member) { check_list(in, member, in.key[1].u, in[0][in.key[0].u]); };
});

// ---- several indices along one dim --------------------------------------------------------------

// Key words: dim, number of indices.
template <class F>
void each_selected(const Call& c, const Axis& a, int m, F f) {
  const idx n = c.key[1].i;
  for (idx o = 0; o < a.outer; ++o)
    for (idx k = 0; k < n; ++k) f((o * a.n + wrapped(c.member[m][1 + k].i, a.n)) * a.inner, (o * n + k) * a.inner);
}

const OpId select_id = register_op([](OpDef& op) {
  op.signature = "_select(x: expr, ids: index*, dim: int, n: int)";
  op.doc = "Elements ids[0], ids[1], ... along dim, in this order; an id may come several times. n is their number.";
  op.args = {{"x"}};
  op.text = [](int, const Word* key, bool) -> std::string {
    return key[0].i == 0 ? "select_rows" : key[0].i == 1 ? "select_cols" : "select";
  };
  op.family = "select";
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    Dim y = in[0];
    in.need(in.key[1].u > 0, "needs at least one index");
    y.d[in.dim_at(0)] = in.key[1].u;
    return y;
  };
  op.forward = [](const Call& c) {
    const Axis a(*c.arg_dim[0], c.key[0].u);
    for (int m = 0; m < c.members; ++m)
      each_selected(c, a, m, [&](idx x, idx y) { copy_few(a.inner, c.x[0][m] + x, c.y[0][m] + y); });
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const Axis a(*c.arg_dim[0], c.key[0].u);
    for (int m = 0; m < c.members; ++m) {
      clear_unless_added(c, m);
      each_selected(c, a, m, [&](idx x, idx y) { add(a.inner, c.dy[0][m] + y, c.dx[0][m] + x); });
    }
  };
  op.check = [](const ShapeIn& in, const Word* member) { check_list(in, member, in.key[1].u, in[0][in.key[0].u]); };
});

// ---- elements of the mini-batch -----------------------------------------------------------------

const OpId pick_batch_elem_id = register_op([](OpDef& op) {
  op.signature = "pick_batch_elem(x: expr, v: int*)";
  op.doc =
      "Batch element v of x: {..} X b -> {..}. It shares the memory of x.\n\n"
      "A negative v counts from the end. IndexError if v is not in -b..b-1.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    ShapeOut out(in[0]);
    out.dim[0].bd = 1;
    out.alias = true;
    return out;
  };
  op.check = [](const ShapeIn& in, const Word* member) { check_index(in, member[0].i, in[0].bd); };
  op.alias_offset = [](const ShapeIn& in, const Word* member) {
    return static_cast<std::size_t>(wrapped(member[0].i, in[0].bd)) * in[0].batch_size();
  };
  op.in_kernels = true;
});

const OpId pick_batch_elems_id = register_op([](OpDef& op) {
  op.signature = "_pick_batch_elems(x: expr, vs: index*, n: int)";
  op.doc = "Batch elements vs[0], vs[1], ... of x as a mini-batch of n.";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    Dim y = in[0];
    in.need(in.key[0].u > 0, "needs at least one index");
    y.bd = in.key[0].u;
    return y;
  };
  op.forward = [](const Call& c) {
    const idx one = static_cast<idx>(c.arg_dim[0]->batch_size()), b = c.arg_dim[0]->bd;
    for (int m = 0; m < c.members; ++m)
      for (idx k = 0; k < c.key[0].i; ++k)
        copy_few(one, c.x[0][m] + wrapped(c.member[m][1 + k].i, b) * one, c.y[0][m] + k * one);
  };
  op.backward = [](const Call& c) {
    if (!c.dx[0].wanted()) return;
    const idx one = static_cast<idx>(c.arg_dim[0]->batch_size()), b = c.arg_dim[0]->bd;
    for (int m = 0; m < c.members; ++m) {
      clear_unless_added(c, m);
      for (idx k = 0; k < c.key[0].i; ++k)
        add(one, c.dy[0][m] + k * one, c.dx[0][m] + wrapped(c.member[m][1 + k].i, b) * one);
    }
  };
  op.check = [](const ShapeIn& in, const Word* member) { check_list(in, member, in.key[0].u, in[0].bd); };
});

}  // namespace
}  // namespace dnl
