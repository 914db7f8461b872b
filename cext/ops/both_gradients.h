// Both gradients of products with a shared matrix at once: rows that repeat are found, and what flows into them is
// added up, for both. Who may include: the ops of this folder. Includes: op/, kernels/.
#pragma once
#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/transposed.h"

namespace dnl {

// y = W x for the columns of shared argument jw from `first` on that x, of k floats, meets: the gradients of x, if
// wanted, and of these columns, and that of a bias, db, unless it is null; the latter two are added to.
inline void add_both_gradients(const Call& c, int jw, idx first, idx k, bool acc_x, const BackRows& all, float* db) {
  const idx m = c.arg_dim[jw]->rows(), most = rows_at_once(m, k);
  for (idx at = 0; at < all.n; at += most) {
    const BackRows r = unite_rows(m, k, all.some(at, std::min(most, all.n - at)));
    if (r.dx.wanted()) times_transposed_columns(c, jw, first, k, r.n, r.dy, Rows{}, acc_x, r.dx);
    gemm_outer(m, k, r.n, r.dy, r.x, c.dx[jw].base + first * m, m);
    if (db) kernels().sum_rows(r.n, m, r.dy, db, true);
  }
}

}  // namespace dnl
