// Who gets which examples of a mini-batch: dynet_lite/distributed/dealing.py. Who may include: bindings/.
#pragma once
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/vec.h"

namespace dnl {

// The part of each example; there are as many parts as speeds. The most expensive are dealt first, each to the part
// that is done with it first, of these to the one that has fewer.
inline void deal(const Vec<double>& costs, const Vec<double>& speeds, Vec<u32>& part_of) {
  struct Part {
    double took;
    std::size_t count;
  };
  Vec<Part> parts;
  parts.assign(speeds.size(), {0, 0});
  Vec<u32> order;
  order.resize(costs.size());
  part_of.resize(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return costs[a] > costs[b]; });
  for (u32 i : order) {
    std::size_t best = 0;
    double done = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const double time = parts[k].took + costs[i] / speeds[k];
      if (k && (time > done || (time == done && parts[k].count >= parts[best].count))) continue;
      best = k;
      done = time;
    }
    parts[best] = {done, parts[best].count + 1};
    part_of[i] = static_cast<u32>(best);
  }
}

}  // namespace dnl
