// Executor::in_lanes: running a function over runs, lanes at the same time. Who may include: exec/.
#pragma once
#include "exec/executor.h"
#include "exec/pool.h"

namespace dnl {

// All runs in [from, to) at the same time, by lane; runs of one lane one after another. Rethrows the first lane's
// error.
template <class F>
void Executor::in_lanes(std::size_t from, std::size_t to, F f) {
  u32 lanes = 1;
  for (std::size_t r = from; r < to; ++r) lanes = runs_[r]->lane + 1 > lanes ? runs_[r]->lane + 1 : lanes;
  for (u32 l = 0; l < lanes; ++l) runners_[l]->shares_calls = lanes == 1 && shares_calls();
  if (lanes == 1) {
    for (std::size_t r = from; r < to; ++r) f(*runs_[r]);
    return;
  }
  run_lanes(static_cast<int>(lanes), options.threads, [&](int lane) {
    for (std::size_t r = from; r < to; ++r)
      if (runs_[r]->lane == static_cast<u32>(lane)) f(*runs_[r]);
  });
}

}  // namespace dnl
