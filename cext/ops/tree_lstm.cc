// Tree LSTM cells (Tai, Socher, Manning 2015): a node of the tree is one node of the graph.
//
// Sums of a node stand in one hidden output: blocks i, o, g, then one forget gate f per child; f is computed for
// present children only, so nodes batch by their number of children. The projections of the node's own input, iog (3h)
// and f (h), are affine_transforms (or just biases) before the cell.
#include "ops/cells.h"

namespace dnl {
namespace {

using cells::Cell;
using cells::Gradient;

enum { kH, kC, kSums, kChildH };  // the last: sum of the children's h, child-sum form only
enum { kIog, kF };

ShapeOut outputs(const ShapeIn& in, u32 h, u32 children) {
  ShapeOut out(cells::state_dim(in, h));
  out.dim[kC] = out.dim[kH];
  out.visible = out.total = 2;
  return out.hidden(cells::state_dim(in, (3 + children) * h));
}

u32 check_projections(const ShapeIn& in) {
  const u32 h = cells::block_size(in, 3);
  cells::need_state(in, kF, h);
  return h;
}

// The forget blocks and the states of the children, as the kernel wants them.
struct Children {
  int n;
  Rows *sums, *c;
  Children(const Cell& s, const Rows& all, int count, int first_c, int step) : n(count) {
    sums = s.c.scratch->array<Rows>(static_cast<std::size_t>(n));
    c = s.c.scratch->array<Rows>(static_cast<std::size_t>(n));
    for (int l = 0; l < n; ++l) {
      sums[l] = s.from(all, (3 + l) * s.h);
      c[l] = first_c < 0 ? Rows{} : s.x(first_c + l * step);
    }
  }
};

void start_sums(const Cell& s, const Rows& sums, int children) {
  kernels().copy_rows(s.k, 3 * s.h, s.x(kIog), sums);
  if (!children) return;
  const Rows f = s.x(kF);
  for (int l = 0; l < children; ++l) kernels().copy_rows(s.k, s.h, f, s.from(sums, (3 + l) * s.h));
}

void squash(const Cell& s, int children, int first_c, int step) {
  const Children ch(s, s.y(kSums), children, first_c, step);
  kernels().tree_lstm_fwd(s.k, s.h, children, s.y(kSums), ch.sums, ch.c, s.c.key[0].f, s.y(kC), s.y(kH));
}

// Gradients of the sums into the gradient memory of the hidden output; of the children's c; of the projections.
void back_gates(const Cell& s, int children, int first_c, int step) {
  const Children ch(s, s.y(kSums), children, first_c, step), d(s, s.dy(kSums), children, -1, 0);
  bool* acc = s.c.scratch->array<bool>(static_cast<std::size_t>(children));
  for (int l = 0; l < children; ++l) {
    const Gradient dc(s, first_c + l * step);
    d.c[l] = dc.rows;
    acc[l] = dc.acc;
  }
  kernels().tree_lstm_bwd(s.k, s.h, children, s.y(kSums), ch.sums, ch.c, s.y(kC), s.dy(kH), s.dy(kC), s.dy(kSums),
                          d.sums, d.c, acc);
  for (int l = 0; l < children; ++l) {
    Gradient dc(s, first_c + l * step);
    dc.rows = d.c[l];
    dc.done();
  }
  Gradient(s, kIog).take(s.dy(kSums));
  if (!children) return;
  Gradient df(s, kF);
  if (!df.wanted()) return;
  if (!df.acc) {
    kernels().copy_rows(s.k, s.h, d.sums[0], df.rows);
  } else {
    kernels().add_rows(s.k, s.h, d.sums[0], df.rows);
  }
  for (int l = 1; l < children; ++l) kernels().add_rows(s.k, s.h, d.sums[l], df.rows);
  df.done();
}

// ---- a leaf ------------------------------------------------------------------------------------------------------

const OpId leaf_id = register_op([](OpDef& op) {
  op.signature = "_tree_lstm_leaf(iog: expr)";
  op.doc = "A leaf of a tree LSTM: iog {3h} in blocks i, o, g -> h {h}, and c {h} as second output.";
  op.args = {{"iog"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return outputs(in, cells::block_size(in, 3), 0); };
  op.forward = [](const Call& c) {
    const Cell s(c);
    start_sums(s, s.y(kSums), 0);
    kernels().tree_lstm_fwd(s.k, s.h, 0, s.y(kSums), nullptr, nullptr, 0.f, s.y(kC), s.y(kH));
  };
  op.backward = [](const Call& c) { back_gates(Cell(c), 0, 0, 0); };
  op.in_kernels = true;
});

// ---- n-ary: each child has matrices of its own ----------------------------------------------------------------------

// Arguments from the third on: h, c, U of each child in turn.
constexpr int kFirst = 2, kStep = 3;
int nary_children(int nargs) { return (nargs - kFirst) / kStep; }

const OpId nary_id = register_op([](OpDef& op) {
  op.signature = "_nary_tree_lstm(iog: expr, f: expr, children: exprs, forget_bias: float = 0.0)";
  op.doc =
      "A node of an n-ary tree LSTM with n children: iog {3h} in blocks i, o, g; f {h}; per child h {h}, c {h} and "
      "u {(3+N)h,h}, N >= n, whose blocks act on i, o, g and the forget gate of each child -> h {h}, and c {h} as "
      "second "
      "output. Tai, Socher, Manning 2015, equations 9 to 14.";
  op.args = {{"iog"}, {"f"}, each("h", Batch::Stack, Access::Near), each("c"), each("u", Batch::Share)};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = check_projections(in);
    in.need(in.nargs > kFirst && (in.nargs - kFirst) % kStep == 0, "takes h, c and u for each child");
    const u32 n = static_cast<u32>(nary_children(in.nargs));
    for (int j = kFirst; j < in.nargs; j += kStep) {
      cells::need_state(in, j, h);
      cells::need_state(in, j + 1, h);
      in.need(in[j + 2].rows() >= (3 + n) * h, "a recurrent matrix has too few rows for so many children");
      cells::need_matrix(in, j + 2, in[j + 2].rows(), h);
    }
    return outputs(in, h, n);
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    const int n = nary_children(c.nargs);
    const Rows sums = s.y(kSums);
    const idx rows = (3 + n) * s.h;
    start_sums(s, sums, n);
    for (int j = kFirst; j < c.nargs; j += kStep) {
      gemm_rows(false, rows, s.k, s.h, s.weight(j + 2), c.arg_dim[j + 2]->rows(), s.x(j), Rows{}, true, sums);
    }
    squash(s, n, kFirst + 1, kStep);
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    const int n = nary_children(c.nargs);
    const Rows da = s.dy(kSums);
    const idx rows = (3 + n) * s.h;
    back_gates(s, n, kFirst + 1, kStep);
    for (int j = kFirst; j < c.nargs; j += kStep) {
      Gradient dh(s, j);
      if (!dh.wanted()) continue;
      times_transposed(c, j + 2, s.k, da, Rows{}, dh.acc, dh.rows, rows);
      dh.done();
    }
  };
  op.backward_shared = [](const Call& c, int wrt) {
    const Cell s(c);
    const idx rows = (3 + nary_children(c.nargs)) * s.h;
    gemm_outer(rows, s.h, s.k, s.dy(kSums), s.x(wrt - 2), s.weight_gradient(wrt), c.arg_dim[wrt]->rows());
  };
  op.in_kernels = true;
});

// ---- child-sum: any number of children, all alike -----------------------------------------------

enum { kUiog = 2, kUf, kFirstChild };
int sum_children(int nargs) { return (nargs - kFirstChild) / 2; }

const OpId child_sum_id = register_op([](OpDef& op) {
  op.signature =
      "_child_sum_tree_lstm(iog: expr, f: expr, uiog: expr, uf: expr, children: exprs, forget_bias: float = 0.0)";
  op.doc =
      "A node of a child-sum tree LSTM: iog {3h} in blocks i, o, g; f {h}; uiog {3h,h} acts on the sum of the "
      "children's "
      "h, uf {h,h} on each; per child h {h} and c {h} -> h {h}, and c {h} as second output. Tai, Socher, Manning 2015, "
      "equations 2 to 8.";
  op.args = {{"iog"},  {"f"}, {"uiog", Batch::Share}, {"uf", Batch::Share}, each("h", Batch::Stack, Access::Near),
             each("c")};
  op.shape = [](const ShapeIn& in) -> ShapeOut {
    const u32 h = check_projections(in);
    in.need(in.nargs > kFirstChild && (in.nargs - kFirstChild) % 2 == 0, "takes h and c for each child");
    cells::need_matrix(in, kUiog, 3 * h, h);
    cells::need_matrix(in, kUf, h, h);
    for (int j = kFirstChild; j < in.nargs; ++j) cells::need_state(in, j, h);
    return outputs(in, h, static_cast<u32>(sum_children(in.nargs))).hidden(cells::state_dim(in, h));
  };
  op.forward = [](const Call& c) {
    const Cell s(c);
    const int n = sum_children(c.nargs);
    const Rows sums = s.y(kSums), total = s.y(kChildH);
    for (int l = 0; l < n; ++l) {
      const Rows x = s.x(kFirstChild + 2 * l);
      l ? kernels().add_rows(s.k, s.h, x, total) : kernels().copy_rows(s.k, s.h, x, total);
      gemm_rows(false, s.h, s.k, s.h, s.weight(kUf), s.h, x, s.x(kF), false, s.from(sums, (3 + l) * s.h));
    }
    gemm_rows(false, 3 * s.h, s.k, s.h, s.weight(kUiog), 3 * s.h, total, s.x(kIog), false, sums);
    squash(s, n, kFirstChild + 1, 2);
  };
  op.backward = [](const Call& c) {
    const Cell s(c);
    const int n = sum_children(c.nargs);
    const Rows da = s.dy(kSums), dtotal = s.dy(kChildH);
    back_gates(s, n, kFirstChild + 1, 2);
    times_transposed(c, kUiog, s.k, da, Rows{}, false, dtotal);
    for (int l = 0; l < n; ++l) {
      Gradient dh(s, kFirstChild + 2 * l);
      if (!dh.wanted()) continue;
      times_transposed(c, kUf, s.k, s.from(da, (3 + l) * s.h), dtotal, dh.acc, dh.rows);
      dh.done();
    }
  };
  op.backward_shared = [](const Call& c, int wrt) {
    const Cell s(c);
    const int n = sum_children(c.nargs);
    const Rows da = s.dy(kSums), total = s.y(kChildH);
    if (wrt == kUiog) return gemm_outer(3 * s.h, s.h, s.k, da, total, s.weight_gradient(wrt), 3 * s.h);
    for (int l = 0; l < n; ++l)
      gemm_outer(s.h, s.h, s.k, s.from(da, (3 + l) * s.h), s.x(kFirstChild + 2 * l), s.weight_gradient(wrt), s.h);
  };
  op.in_kernels = true;
});

}  // namespace
}  // namespace dnl
