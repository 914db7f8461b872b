// A small pool of worker threads of the process: lanes that run at the same time, and one task in the background.
//
// Lanes are dealt by a shared counter to whoever has time: the caller, workers, and who waits for the task that made
// them. Who runs a lane makes no difference to what it computes. How many threads work at once is decided for each pass
// (exec/trial.h), and there are never more than processors; with one the caller does everything. Workers without work
// spin for some tenths of a millisecond before they sleep, or where processors are scarce some microseconds; how
// threads wait for one another is told in base/wait.h. After a fork the child makes its own. Who may include:
// exec/, bindings/. Includes: standard library only.
#pragma once
#include <cstdint>
#include <functional>

namespace dnl {

// Runs lanes 0 to n - 1 and blocks until all are done. At most `threads` threads work on them, the caller among them;
// fewer where the system gives the process no more. One caller at a time uses the workers; a second one runs its lanes
// one after another. Throws what the first lane that failed threw; with one thread those after it have not run then.
void run_lanes(int n, int threads, const std::function<void(int)>& lane);
// A lone lane is called as it is: of a small pass, making a function object takes a part that can be measured.
template <class F>
void run_lanes(int n, int threads, const F& lane) {
  if (n == 1) return lane(0);
  run_lanes(n, threads, std::function<void(int)>(std::cref(lane)));
}

// Runs the task on a worker. What it does in lanes is done by at most `threads` - 1 workers, and by who waits for it.
// There is one task at a time. False: the workers are in use, nothing was begun. The task must not throw.
bool start_task(int threads, std::function<void()> task);
// Takes lanes of the task until it is done, or the task itself if no worker has begun it. Once for each task.
void finish_task();

// At the start of a forward pass that may use so many threads: decides how many work until the next pass begins.
void begin_pass(int threads);
// Passes that might have used several threads since the process began, by what was decided.
struct PassCounts {
  std::uint64_t several = 0, one = 0;
};
PassCounts pass_counts();
// From the next pass on so many threads work at once, whatever is measured; 0: what is measured decides. For tests.
void force_threads(int threads);

}  // namespace dnl
