// A small pool of worker threads: runs one function on lanes 0..n-1 at the same time, lane 0 on the caller's thread.
//
// Waiting workers spin for some microseconds, then sleep. After a fork the child makes its own workers. An exception of a
// lane must be kept by the function (Runner::error). Who may include: exec/. Includes: standard library only.
#pragma once
#include <functional>

namespace dnl {

// Blocks until all lanes are done. n is at least 1; the pool grows to n - 1 workers. One caller at a time uses the
// workers; a second one runs its lanes one after another.
void run_lanes(int n, const std::function<void(int)>& lane);

}  // namespace dnl
