// Intra-op parallelism: the members of one large call are dealt to threads, where examples hang together and cannot be
// dealt to lanes (mini-batches made by hand).
//
// Whether and how is the backend's affair; the engine lends it the threads, and plans with the same measure
// (Team::parts). Results must be the same for every run with as many threads. Who may include: op/, backends/,
// schedule/, exec/. Includes: op/op.h.
#pragma once
#include <algorithm>
#include <functional>

#include "base/product_counts.h"
#include "op/op.h"

namespace dnl {

// Threads that the engine lends for one call.
struct Team {
  int threads = 1;
  u64 least_work = 0;  // floats touched; with less, threads are not worth waking
  // Runs parts 0 to n - 1, at most `threads` at the same time, and returns when all are done.
  void (*run)(int n, int threads, const std::function<void(int)>& part) = nullptr;

  // In how many parts had a call better run? Floats of all outputs, and of all shared arguments, of one member. shared:
  // with the gradients of shared arguments.
  int parts(u32 members, std::size_t outputs, std::size_t weights, bool shared) const {
    if (threads < 2 || members < 2) return 1;
    if (members * (outputs + weights / 4) < least_work) return 1;
    // Clearing and adding a matrix must be little beside the products that make it.
    if (shared && least_work && 4 * weights > members * outputs) return 1;
    return std::min(threads, static_cast<int>(members));
  }
};

// What runs calls in parts, for one thread that makes calls.
class IntraOp {
 public:
  virtual ~IntraOp() = default;
  // False: the call is not worth it, nothing was done. Else it is done.
  virtual bool forward(const Call& c, const Team& team) = 0;
  // apart: each member assigns gradients that nobody else of the call writes to.
  virtual bool backward(const Call& c, const Team& team, bool apart) = 0;
  // Of all shared arguments that want a gradient.
  virtual bool backward_shared(const Call& c, const Team& team) = 0;
  // What products did in other threads since the last time.
  virtual ProductCounts take_counts() = 0;
  virtual void release() = 0;
};

}  // namespace dnl
