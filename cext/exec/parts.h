// Calls in parts: where examples hang together and cannot be dealt to lanes (mini-batches made by hand), the members of
// a large call are dealt to threads instead; those of a cell that has one member the elements of its mini-batch.
//
// Each part has scratch memory of its own, and adds up gradients of shared arguments in memory of its own, but the
// first; these are added in order, so that a run with n threads is deterministic. Who may include: exec/. Includes:
// op/.
#pragma once
#include <memory>
#include <vector>

#include "base/arena.h"
#include "exec/options.h"
#include "op/backend.h"

namespace dnl {

class CallParts {
 public:
  // False: the call is not worth it, nothing was done. Else it is done.
  bool forward(Backend& backend, const Call& c, const ExecOptions& options);
  // apart: each member assigns gradients that nobody else of the call writes to.
  bool backward(Backend& backend, const Call& c, const ExecOptions& options, bool apart);
  // Of all shared arguments that want a gradient.
  bool backward_shared(Backend& backend, const Call& c, const ExecOptions& options);
  void release() {
    parts_ = std::vector<std::unique_ptr<Part>>();
    release_all(bounds_, live_, item_rows_);
  }
  // What products did in other threads since the last time.
  ProductCounts take_counts();

 private:
  struct Part final : Scratch {
    Arena arena, rows;
    Call call;
    ProductCounts counts;
    float* alloc(std::size_t n) override { return arena.floats(n); }
    void* list(std::size_t n) override { return arena.alloc_bytes(n); }
  };

  template <class F>
  void run(Backend& backend, const Call& c, bool private_shared, F f);
  // In how many parts would it be run? shared: with the gradients of shared arguments.
  static int worth(const Call& c, const ExecOptions& options, bool shared);
  bool by_item(const Call& c);
  void choose_bounds(Backend& backend, const Call& c, int count, bool by_gradient);
  void cut(const Call& c, int part);
  void give_private(Part& part, const Call& c);
  void add_private(Backend& backend, const Call& c);

  std::vector<std::unique_ptr<Part>> parts_;
  Vec<int> bounds_;  // of the parts of this call, one more than there are
  Vec<u32> live_;    // by member: gradients that are not zero
  Call items_{};     // a call of one member as one of its elements
  Arena item_rows_;  // its arrays
};

}  // namespace dnl
