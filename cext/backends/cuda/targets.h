// Rows that a record writes, seen by address: do some meet?
// Who may include: backends/cuda. Includes: base/.
#pragma once
#include <algorithm>
#include <cstdlib>

#include "base/rows.h"
#include "base/vec.h"

namespace dnl::cuda {

// Rows of one list that are written: whether all are apart, and the order of their addresses.
struct Targets {
  Vec<u32> order;
  bool apart = true, equal_or_apart = true;

  Targets(std::ptrdiff_t k, std::ptrdiff_t n, const Rows& rows) {
    if (rows.regular() && (k <= 1 || std::abs(rows.stride) >= n)) return;
    order.resize(static_cast<std::size_t>(k));
    for (std::ptrdiff_t m = 0; m < k; ++m) order[static_cast<std::size_t>(m)] = static_cast<u32>(m);
    std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return rows[a] < rows[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::ptrdiff_t distance = rows[order[i]] - rows[order[i - 1]];
      apart = apart && distance >= n;
      equal_or_apart = equal_or_apart && (distance == 0 || distance >= n);
    }
  }
};

}  // namespace dnl::cuda
