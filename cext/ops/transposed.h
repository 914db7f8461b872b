// Products with the transpose of a shared matrix, in backward.
// Who may include: the ops of this folder. Includes: op/, kernels/.
#pragma once
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "kernels/transposes.h"
#include "op/op.h"

namespace dnl {

// Of rows x cols numbers, columns of w `step` apart: the columns of the transpose lie columns_apart(cols).
inline void transpose_to(float* to, idx rows, idx cols, const float* w, idx step) {
  kernels().transpose_strided(cols, rows, w, step, to, columns_apart(cols), false);
}
inline std::size_t transposed_size(idx rows, idx cols) { return static_cast<std::size_t>(rows * columns_apart(cols)); }

// The transpose of some columns of shared argument j, where products of it with n columns had better read that; else
// null. Of several calls a matrix may be large; one call alone has it transposed as well, but other calls may share
// that: those of another lane, or with matrices of other widths.
inline const float* transposed(const Call& c, int j, idx first, idx cols, idx n) {
  constexpr idx kLargest = idx(1) << 20, kLargestOfOne = idx(1) << 16, kManyColumns = 32;
  constexpr idx kLine = 16, kShort = 128;  // floats
  const idx rows = c.arg_dim[j]->rows();
  // Of short columns that do not fill vectors, dot products take nearly twice as long.
  const int worth = rows <= kShort && rows % kLine ? 8 : 16;
  const bool several = c.of_signature >= worth && c.of_signature > c.members;
  if (!c.transposes || (!several && n < kManyColumns) || rows * cols > (several ? kLargest : kLargestOfOne))
    return nullptr;
  const float* w = c.x[j].base + first * rows;
  return c.transposes->get({w, static_cast<std::uint64_t>(rows) << 32 | static_cast<std::uint64_t>(cols)},
                           transposed_size(rows, cols), [&](float* to) { transpose_to(to, rows, cols, w, rows); });
}

// Row i of `to` is (or, with acc, gets added) the transpose of some columns of shared argument j times row i of `from`,
// plus row i of `add` where that is wanted; n rows. `used`: only the first rows of the matrix take part. For each j
// always the same columns.
inline void times_transposed_columns(const Call& c, int j, idx first, idx cols, idx n, Rows from, Rows add, bool acc,
                                     Rows to, idx used = 0) {
  const idx rows = c.arg_dim[j]->rows(), k = used ? used : rows;
  if (const float* t = transposed(c, j, first, cols, n))
    return gemm_rows(false, cols, n, k, t, columns_apart(cols), from, add, acc, to);
  gemm_rows(true, cols, n, k, c.x[j].base + first * rows, rows, from, add, acc, to);
}

// All columns.
inline void times_transposed(const Call& c, int j, idx n, Rows from, Rows add, bool acc, Rows to, idx used = 0) {
  times_transposed_columns(c, j, 0, c.arg_dim[j]->cols(), n, from, add, acc, to, used);
}

}  // namespace dnl
