// What the recurrent cells share: their operands seen as columns, and tanh.
//
// A cell works on columns: members of the batch times matrix columns times elements of a manual mini-batch. An operand
// without a mini-batch beside operands with one is repeated over the elements, and its gradient is summed over them.
// Who may include: the cell ops of this folder. Includes: op/, kernels/.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/columns.h"
#include "ops/transposed.h"

namespace dnl {
namespace cells {

// Formulas have the same numbers in every table.
inline std::ptrdiff_t unary_kernel(const char* name) {
  const Kernels& k = kernels();
  auto of_name = [&](const UnaryKernel& u) { return !std::strcmp(u.name, name); };
  return std::find_if(k.unary, k.unary + k.n_unary, of_name) - k.unary;
}
inline const UnaryKernel& tanh() {
  static const std::ptrdiff_t number = unary_kernel("tanh");
  return kernels().unary[number];
}

// The batched call of a cell whose state has `h` floats a column.
class Cell {
 public:
  explicit Cell(const Call& call)
      : c(call), h(call.out_dim[0].rows()), per(static_cast<idx>(call.out_size(0)) / h), k(call.members * per) {}

  const Call& c;
  const idx h, per, k;  // state size, columns of a member, columns of the call

  // One row per column.
  Rows x(int j) const { return columns(c.x[j], *c.arg_dim[j]); }
  Rows y(int o) const { return columns(c.y[o], c.out_dim[o]); }
  Rows dy(int o) const { return columns(c.dy[o], c.out_dim[o]); }
  const float* weight(int j) const { return c.x[j].base; }
  float* weight_gradient(int j) const { return c.dx[j].base; }
  Rows scratch_rows(idx n) const { return Rows{c.scratch->alloc(static_cast<std::size_t>(k * n)), n, nullptr}; }
  // Where output o is written; what must not be written (Call::restore) goes to scratch memory.
  Rows to(int o) const { return c.restore ? scratch_rows(c.out_dim[o].rows()) : y(o); }
  // What was computed so far lies where output o will be: x(0), over which it may lie (Over::Arg0).
  Rows begun(int o) const {
    const Rows to = y(o);
    if (!c.over) kernels().copy_rows(k, c.out_dim[o].rows(), x(0), to);
    return to;
  }
  // Where the gradient of the sums lies that backward hands to backward_shared, when it is that of argument 0 too: in
  // the gradient of argument 0 (Keep::Arg0), else in the gradient memory of a hidden output.
  bool kept() const { return c.kept && !repeated(0); }
  Rows kept_or(int hidden) const { return kept() ? columns(c.dx[0], *c.arg_dim[0]) : dy(hidden); }
  bool repeated(int j) const { return static_cast<idx>(c.arg_size(j)) / c.arg_dim[j]->rows() != per; }

  // The same rows from float `at` on.
  Rows from(const Rows& r, idx at) const {
    if (r.regular()) return Rows{r.base + at, r.stride, nullptr};
    float** p = addresses();
    for (idx i = 0; i < k; ++i) p[i] = r.ptr[i] + at;
    return Rows{nullptr, 0, p};
  }

 private:
  friend class Gradient;
  float** addresses() const { return c.scratch->array<float*>(static_cast<std::size_t>(k)); }
  Rows columns(const Rows& r, const Dim& d) const {
    return columns_of(c, r, d.rows(), static_cast<idx>(d.size()) / d.rows(), per);
  }
};

// Where the gradient of argument j goes, one row per column: write (or add, when acc) to rows, then call done().
class Gradient {
 public:
  Gradient(const Cell& cell, int arg) : cell_(cell), j_(arg) {
    const Call& c = cell.c;
    if (!wanted()) return;
    if (cell.repeated(arg)) {
      rows = cell.scratch_rows(c.arg_dim[arg]->rows());
    } else {
      rows = cell.columns(c.dx[arg], *c.arg_dim[arg]);
      acc = c.acc[arg];
    }
  }
  bool wanted() const { return cell_.c.dx[j_].wanted(); }
  // All rows come from these.
  void take(const Rows& from) {
    if (!wanted()) return;
    const idx n = cell_.c.arg_dim[j_]->rows();
    acc ? kernels().add_rows(cell_.k, n, from, rows) : kernels().copy_rows(cell_.k, n, from, rows);
    done();
  }
  // Sums a repeated operand's gradient over the columns it was used for.
  void done() {
    const Call& c = cell_.c;
    if (!wanted() || !cell_.repeated(j_)) return;
    const idx n = static_cast<idx>(c.arg_size(j_));
    for (int m = 0; m < c.members; ++m)
      for (idx i = 0; i < cell_.per / (n / c.arg_dim[j_]->rows()); ++i)
        kernels().scale_to(n, 1.f, rows.base + m * cell_.per * c.arg_dim[j_]->rows() + i * n, c.dx[j_][m],
                           c.acc[j_] || i > 0);
  }

  Rows rows{};
  bool acc = false;

 private:
  const Cell& cell_;
  const int j_;
};

// ---- shape rules -----------------------------------------------------------------------------------------------

// The shape of a state of h floats a column, for a cell whose argument `proj` has one row of projections per column.
inline Dim state_dim(const ShapeIn& in, u32 h, int proj = 0) {
  Dim d = in[proj];
  d.d[0] = h;
  d.bd = in.common_batch();
  return d;
}
// Rows of the projection must be `parts` blocks; gives the size of a block.
inline u32 block_size(const ShapeIn& in, u32 parts, int proj = 0) {
  in.need(in[proj].nd >= 1 && in[proj].rows() % parts == 0,
          parts == 4 ? "the projection needs rows in 4 blocks" : "the projection needs rows in equal blocks");
  return in[proj].rows() / parts;
}
inline void need_state(const ShapeIn& in, int j, u32 h, int proj = 0) {
  in.need(in[j].nd >= 1 && in[j].rows() == h && in[j].batch_size() / h == in[proj].batch_size() / in[proj].rows(),
          "a state needs the size of the cell");
}
inline void need_matrix(const ShapeIn& in, int j, u32 rows, u32 cols) {
  in.need(in[j].nd <= 2 && in[j].rows() == rows && in[j].cols() == cols && in[j].bd == 1,
          "a recurrent matrix has the wrong shape");
}

}  // namespace cells
}  // namespace dnl
