#include "schedule/bins.h"

#include <algorithm>
#include <functional>

namespace dnl {

void Bins::clear() {
  works_.clear();
  targets_.clear();
}

u32 Bins::first_of_chain(u32 work) const {
  while (works_[work].parent != work) work = works_[work].parent;
  return work;
}

// Which works add to the same memory; the cost of a chain is kept at its first work.
void Bins::find_chains() {
  for (u32 w = 0; w < works_.size(); ++w) {
    works_[w].cost = 0;
    works_[w].parent = w;
  }
  std::sort(targets_.begin(), targets_.end(), [](const Target& a, const Target& b) {
    return a.memory != b.memory ? std::less<const float*>()(a.memory, b.memory) : a.work < b.work;
  });
  for (std::size_t k = 1; k < targets_.size(); ++k) {
    if (targets_[k].memory != targets_[k - 1].memory) continue;
    const u32 a = first_of_chain(targets_[k - 1].work), b = first_of_chain(targets_[k].work);
    works_[std::max(a, b)].parent = std::min(a, b);
  }
  total_ = 0;
  for (const Target& t : targets_) {
    works_[first_of_chain(t.work)].cost += t.cost;
    total_ += t.cost;
  }
  chains_.clear();
  for (u32 w = 0; w < works_.size(); ++w)
    if (works_[w].parent == w) chains_.push_back(w);
  std::sort(chains_.begin(), chains_.end(),
            [&](u32 a, u32 b) { return works_[a].cost != works_[b].cost ? works_[a].cost > works_[b].cost : a < b; });
}

// Chains that are too much for one thread fall apart into what is formed together: a work keeps one part, and further
// works take the others. False: there are none.
bool Bins::cut_large(u32 threads) {
  const std::size_t before = works_.size();
  bool any = false;
  // What is dealt must not depend on where memory lies.
  std::sort(targets_.begin(), targets_.end(),
            [](const Target& a, const Target& b) { return a.work != b.work ? a.work < b.work : a.arg < b.arg; });
  for (Target& t : targets_) {
    if (works_[first_of_chain(t.work)].cost * threads * 2 <= total_) continue;
    any = true;
    Work& old = works_[t.work];
    if (old.arg == kAllArgs) old.arg = t.arg;
    if (old.arg == t.arg) continue;
    Work part = old;
    part.arg = t.arg;
    std::size_t w = before;
    while (w < works_.size() && (works_[w].run != part.run || works_[w].type != part.type || works_[w].arg != part.arg))
      ++w;
    if (w == works_.size()) works_.push_back(part);
    t.work = static_cast<u32>(w);
  }
  return any;
}

u32 Bins::deal(u32 threads, u32 most_bins) {
  // Room for the most that can be: what is cut depends on how many nodes there are of each type.
  works_.reserve(works_.size() + targets_.size());
  chains_.reserve(works_.size() + targets_.size());
  load_.reserve(most_bins);
  find_chains();
  if (cut_large(threads)) find_chains();
  const u32 bins = std::min(most_bins, static_cast<u32>(chains_.size()));
  load_.assign(bins, 0);
  for (u32 chain : chains_) {
    u64* least = std::min_element(load_.begin(), load_.end());
    *least += works_[chain].cost;
    works_[chain].bin = static_cast<u32>(least - load_.begin());
  }
  for (u32 w = 0; w < works_.size(); ++w) works_[w].bin = works_[first_of_chain(w)].bin;
  // The order of a chain must not depend on where memory lies.
  std::sort(works_.begin(), works_.end(), [](const Work& a, const Work& b) {
    return a.run != b.run ? a.run < b.run : a.type != b.type ? a.type < b.type : a.arg < b.arg;
  });
  return bins;
}

}  // namespace dnl
