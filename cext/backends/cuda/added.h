// Rows that a record adds to. Who may include: backends/cuda. Includes: table.h, targets.h.
#pragma once
#include "backends/cuda/table.h"
#include "backends/cuda/targets.h"

namespace dnl::cuda {

// Rows that a record adds to, all at once: where some meet, they lie apart, and done() adds them in order.
class Added {
 public:
  Added(idx k, idx n, const Rows& to, bool acc, bool aside) : to_(to), k_(k), n_(n), rows(to), adds(acc) {
    if (!to.wanted() || !aside) return;
    rows = Rows{recorder().temporary(static_cast<std::size_t>(k * n)), n, nullptr};
    adds = false;
    then_ = acc ? table().add_rows : table().copy_rows;
  }
  Added(idx k, idx n, const Rows& to, bool acc)
      : Added(k, n, to, acc, acc && to.wanted() && !Targets(k, n, to).apart) {}
  void done() const {
    if (then_) then_(k_, n_, rows, to_);
  }

 private:
  Rows to_;
  idx k_, n_;
  void (*then_)(idx, idx, Rows, Rows) = nullptr;

 public:
  Rows rows;
  bool adds;
};

}  // namespace dnl::cuda
