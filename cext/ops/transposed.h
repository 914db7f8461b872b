// Products with the transpose of a shared matrix, in backward: of all calls of a signature the first transposes it.
// Who may include: the ops of this folder. Includes: op/, kernels/.
#pragma once
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {

// The transpose of shared argument j, from the memo, when several calls share the cost; else null.
inline const float* transposed(const Call& c, int j) {
  constexpr std::size_t kLargest = std::size_t(1) << 20;
  const Dim& d = *c.arg_dim[j];
  if (!c.memo || c.of_signature < 16 || c.of_signature <= c.members || d.size() > kLargest) return nullptr;
  if (!c.memo[j]) {
    c.memo[j] = c.lasting->alloc(d.size());
    kernels().transpose(d.rows(), d.cols(), c.x[j].base, c.memo[j], false);
  }
  return c.memo[j];
}

// Row i of `to` is (or, with acc, gets added) the transpose of shared argument j times row i of `from`, plus row i of `add`
// where that is wanted; n rows. `used`: only the first rows of the matrix take part.
inline void times_transposed(const Call& c, int j, idx n, Rows from, Rows add, bool acc, Rows to, idx used = 0) {
  const idx rows = c.arg_dim[j]->rows(), cols = c.arg_dim[j]->cols(), k = used ? used : rows;
  if (const float* t = transposed(c, j)) return gemm_rows(false, cols, n, k, t, cols, from, add, acc, to);
  gemm_rows(true, cols, n, k, c.x[j].base, rows, from, add, acc, to);
}

}  // namespace dnl
