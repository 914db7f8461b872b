// Calls in parts: where examples hang together and cannot be dealt to lanes (mini-batches made by hand), the members of a large
// call are dealt to threads instead.
//
// Each part has scratch memory of its own, and adds up gradients of shared arguments in memory of its own, but the first;
// these are added in order, so that a run with n threads is deterministic. Who may include: exec/. Includes: op/.
#pragma once
#include <memory>
#include <vector>

#include "base/arena.h"
#include "exec/options.h"
#include "kernels/gemm.h"
#include "op/backend.h"

namespace dnl {

class CallParts {
 public:
  // False: the call is not worth it, nothing was done. Else it is done.
  bool forward(Backend& backend, const Call& c, const ExecOptions& options);
  // All gradients of stacked arguments that are wanted must have addresses of their own, to be assigned.
  bool backward(Backend& backend, const Call& c, const ExecOptions& options);
  // Of all shared arguments that want a gradient.
  bool backward_shared(Backend& backend, const Call& c, const ExecOptions& options);
  void release() { parts_ = std::vector<std::unique_ptr<Part>>(); }
  // What products did in other threads since the last time.
  ProductCounts take_counts();

 private:
  struct Part final : Scratch {
    Arena arena, rows;
    Call call;
    ProductCounts counts;
    float* alloc(std::size_t n) override { return arena.floats(n); }
  };

  template <class F>
  void run(Backend& backend, const Call& c, int count, bool private_shared, F f);
  void cut(const Call& c, int part, int count);
  void give_private(Part& part, const Call& c);
  void add_private(Backend& backend, const Call& c, int count);
  static int worth(const Call& c, const ExecOptions& options, bool shared);

  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace dnl
