// Which gradients of parameters are complete while a backward pass still runs, so that they can be sent to other
// processes.
//
// A gradient is complete when the first group that reads the parameter has run backward: groups run in reverse, and
// nothing else adds to it. Of lanes, which run at the same time, when all have. What no run reads is not told. Threads
// do not share this; it is used by the thread that runs the pass. Who may include: exec/, bindings/. Includes: graph/.
#pragma once
#include <chrono>

#include "graph/graph.h"

namespace dnl {

struct Run;

// Told during a backward pass, by the thread that runs it.
class GradientWatch {
 public:
  virtual ~GradientWatch() = default;
  // Nothing will be added to these gradients in this pass. n = 0: nothing new, but time has passed (kPause).
  virtual void complete(Parameter* const* parameters, std::size_t n) noexcept = 0;
};

class Completion {
 public:
  static constexpr std::chrono::microseconds kPause{200};

  // Null: nobody wants to know, and all of this costs nothing.
  GradientWatch* watch = nullptr;

  // Before a pass. see(run number, run) for all of its runs in their order follows.
  void begin();
  void see(const Graph& g, u32 number, const Run& run);
  // Groups from this one on have run backward.
  void passed(u32 run, u32 group);
  void release() { release_all(first_, told_); }

 private:
  struct First {
    u32 run, group;
    Parameter* parameter;
  };
  void note(const Graph& g, NodeId argument, u32 run, u32 group);

  Vec<First> first_;  // in the order of runs and groups; from the end those that were told are taken off
  Vec<Parameter*> told_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace dnl
