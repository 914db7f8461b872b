// The rows of a call seen as columns: one row per matrix column and element of a mini-batch, of all members.
// Who may include: the ops of this folder. Includes: op/, kernels/.
#pragma once
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {

// `per` columns of n floats for each member of r; a member that holds fewer, `own`, repeats them.
inline Rows columns_of(const Call& c, const Rows& r, idx n, idx own, idx per) {
  if (per == 1) return r;
  if (own == per && r.regular() && (c.members == 1 || r.stride == n * per)) return Rows{r.base, n, nullptr};
  if (own == 1 && r.regular() && (c.members == 1 || r.stride == 0)) return Rows{r.base, 0, nullptr};
  float** p = c.scratch->array<float*>(static_cast<std::size_t>(c.members * per));
  for (int m = 0; m < c.members; ++m)
    for (idx i = 0; i < per; ++i) p[m * per + i] = r[m] + i % own * n;
  return Rows{nullptr, 0, p};
}

}  // namespace dnl
