// Trained numbers as they were when nodes ran, for a time: what a backward pass through these nodes reads.
//
// The numbers are exchanged where they lie, so that all addresses hold. Whoever uses this holds the gradient mutexes of
// the graph's parameters and tables, which keeps updates away. Who may include: exec/. Includes: graph/.
#pragma once
#include "graph/graph.h"

namespace dnl {

class Rewound {
 public:
  // Of nodes that this thread ran.
  Rewound(Graph& g, Backend& backend, Owner owner) : g_(g), backend_(backend), owner_(owner), at_(now()) {}
  ~Rewound() { present(); }
  Rewound(const Rewound&) = delete;
  Rewound& operator=(const Rewound&) = delete;

  // Throws Error(Runtime) if what was read at that moment is not kept any more.
  void check(Moment ran_at) const;
  // From here on the numbers are those of that moment. True: they are others than before.
  bool to(Moment ran_at);
  // As they are now.
  bool present();

 private:
  // f(versions, their store, size of a row) for all parameters and tables; true if it was so for any.
  template <class F>
  bool each(F f) const;

  Graph& g_;
  Backend& backend_;
  Owner owner_;
  Moment at_;
  bool rewound_ = false;
};

}  // namespace dnl
