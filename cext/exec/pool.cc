#include "exec/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#ifndef _WIN32
#include <unistd.h>
#endif

#include "base/wait.h"
#include "exec/trial.h"

namespace dnl {
namespace {

int process_id() {
#ifdef _WIN32
  return 0;  // no fork
#else
  return static_cast<int>(getpid());
#endif
}

std::atomic<std::int64_t> workers_worked{0};  // nanoseconds
thread_local int worked_depth = -1;           // of a worker: scopes of Worked

// A worker works within a scope; in a scope of another thread nothing is counted.
class Worked {
 public:
  Worked() {
    if (worked_depth >= 0 && worked_depth++ == 0) from_ = time_worked();
  }
  ~Worked() {
    if (worked_depth > 0 && --worked_depth == 0)
      workers_worked.fetch_add(time_worked() - from_, std::memory_order_relaxed);
  }
  Worked(const Worked&) = delete;
  Worked& operator=(const Worked&) = delete;

 private:
  std::int64_t from_ = 0;
};

// Lanes of one call, handed out by a counter. The call's number is in the same word, so that nobody takes a lane of the
// next call with the function of the last.
class Lanes {
 public:
  // Runs a lane if there is one left.
  bool take() {
    std::uint64_t s = state_.load(std::memory_order_acquire);
    while ((s & 0xffff) < (s >> 16 & 0xffff)) {
      if (!state_.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      const int lane = static_cast<int>(s & 0xffff);
      try {
        const AtWork here;
        const Worked counted;
        meet(lane);
        (*lane_)(lane);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_ || lane < failed_) {
          error_ = std::current_exception();
          failed_ = lane;
        }
      }
      done_.fetch_add(1, std::memory_order_release);
      return true;
    }
    return false;
  }
  void begin(int n, const std::function<void(int)>& lane) {
    lane_ = &lane;
    done_.store(0, std::memory_order_relaxed);
    state_.store(std::uint64_t(++call_) << 32 | std::uint64_t(n) << 16, std::memory_order_release);
  }
  // Takes part, and waits for the others. Rethrows what the first lane that failed threw.
  void finish(int n) {
    while (take()) {}
    for (Wait wait; done_.load(std::memory_order_acquire) < n;) wait.turn();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  // Under the thread sanitizer lanes wait some milliseconds for one another to begin: tests have little work, which one
  // thread does before another is awake, and then nothing runs at the same time. Orders nothing.
  void meet([[maybe_unused]] int lane) const {
#if defined(__SANITIZE_THREAD__)
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t s = state_.load(std::memory_order_relaxed);
      if ((s & 0xffff) > static_cast<std::uint64_t>(lane) + 1 || (s & 0xffff) == (s >> 16 & 0xffff)) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
#endif
  }

  std::mutex mutex_;  // of the next two, until all are done
  std::exception_ptr error_;
  int failed_ = 0;
  std::atomic<std::uint64_t> state_{0};  // number of the call, how many lanes, the next one
  std::atomic<int> done_{0};
  const std::function<void(int)>* lane_ = nullptr;
  std::uint32_t call_ = 0;
};

// So many turns, some tenths of a millisecond, a worker looks for work before it sleeps: longer than from the value of
// a mini-batch to the beginning of the next. To be woken takes a thread much longer than to see that there is work.
constexpr std::uint32_t kIdleTurns = 20000;
// Where other programs want the processors it sleeps much sooner: it would use up the time that is its due, and be
// stopped when it has work. That is so while a worker loses this share of its time, and some periods of work longer.
constexpr std::uint32_t kSharedTurns = 500;
constexpr double kLost = 0.2;
constexpr int kPeriods = 32;

class Pool {
 public:
  explicit Pool(int pid) : pid_(pid) {}
  int pid() const { return pid_; }

  void run(int n, int threads, const std::function<void(int)>& lane) {
    try {
      admit(threads - 1);
    } catch (const std::system_error&) {
      // No more threads are to be had: those that there are run the lanes.
    }
    more_lanes(n, lane);
  }
  // The same for the task, whose helpers are admitted.
  void more_lanes(int n, const std::function<void(int)>& lane) {
    lanes_.begin(n, lane);
    wake();
    lanes_.finish(n);
  }
  void start(int threads, std::function<void()> task) {
    admit(threads - 1);
    task_ = std::move(task);  // before it is posted nothing can fail any more
    task_state_.store(kPosted, std::memory_order_release);
    wake();
  }
  void finish() {
    for (Wait wait; task_state_.load(std::memory_order_acquire) != kDone;)
      if (!work_once()) wait.turn();
    task_ = nullptr;
    task_state_.store(kNone, std::memory_order_relaxed);
  }

 private:
  enum { kNone, kPosted, kBegun, kDone };

  // Workers 1 to n take part from now on. They live as long as the process: the pool is never destroyed.
  void admit(int n) {
    admitted_.store(n, std::memory_order_relaxed);
    while (static_cast<int>(workers_.size()) < n) {
      const int index = static_cast<int>(workers_.size()) + 1;
      workers_.emplace_back([this, index] { work(index); });
      workers_.back().detach();
    }
  }
  void wake() {
    waker_.store(this_processor(), std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      calls_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
  }
  bool work_once() {
    int posted = kPosted;
    if (task_state_.load(std::memory_order_relaxed) == kPosted &&
        task_state_.compare_exchange_strong(posted, kBegun, std::memory_order_acq_rel)) {
      {
        const AtWork here;
        const Worked counted;
        task_();
      }
      task_state_.store(kDone, std::memory_order_release);
      return true;
    }
    return lanes_.take();
  }
  void work(int index) {
    worked_depth = 0;
    LostTime lost;
    lost.begin();
    int calm = kPeriods;  // periods of work since one in which time was lost
    bool worked = false;
    for (Spin spin;;) {
      const unsigned seen = calls_.load(std::memory_order_acquire);
      if (index <= admitted_.load(std::memory_order_relaxed) && work_once()) {
        spin.again();
        worked = true;
      } else if (worked) {
        worked = false;
        calm = lost.share() > kLost ? 0 : calm + (calm < kPeriods);
        lost.begin();
      } else if (spin.turns() < (calm < kPeriods ? kSharedTurns : kIdleTurns)) {
        spin.turn();
      } else {
        sleep(seen);
        spin.again();
        lost.begin();
      }
    }
  }
  void sleep(unsigned seen) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return calls_.load(std::memory_order_relaxed) != seen; });
    }
    leave_processor(waker_.load(std::memory_order_relaxed));
  }

  const int pid_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<unsigned> calls_{0};
  std::atomic<int> admitted_{0}, waker_{-1};  // how many workers take part; where the thread ran that called them
  Lanes lanes_;
  std::function<void()> task_;
  std::atomic<int> task_state_{kNone};
};

std::atomic<bool> in_use{false};
Pool* pool = nullptr;               // of who has in_use
thread_local bool in_task = false;  // this thread runs the task

bool take_pool() {
  if (in_use.exchange(true, std::memory_order_acquire)) return false;
  // A forked child has the pool's memory but none of its threads: it starts anew.
  if (!pool || pool->pid() != process_id()) pool = new Pool(process_id());
  return true;
}

void give_pool() { in_use.store(false, std::memory_order_release); }

// How many threads work at once, whatever they are asked for.
class AtOnce {
 public:
  int of(int threads) const { return std::min(threads, most_.load(std::memory_order_relaxed)); }
  void pass(int threads) {
    if (threads < 2 && interrupted_.load(std::memory_order_relaxed)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (threads < 2 || std::this_thread::get_id() != thread_) trial_.interrupt();
    thread_ = std::this_thread::get_id();
    interrupted_ = threads < 2;
    if (threads < 2) return;
    if (const std::int64_t worked = time_worked(); worked >= 0)
      trial_.begin_pass(now(), worked + workers_worked.load(std::memory_order_relaxed));
    const int most = forced_ ? forced_ : trial_.several() ? processors() : 1;
    most_.store(most, std::memory_order_relaxed);
    ++(most > 1 ? counts_.several : counts_.one);
  }
  void force(int threads) {
    const std::lock_guard<std::mutex> lock(mutex_);
    forced_ = threads;
  }
  PassCounts counts() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
  }

 private:
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  // More threads than processors only wait for one another.
  static int processors() {
    const int allowed = processors_allowed();
    return allowed ? allowed : kAll;
  }

  static constexpr int kAll = 1 << 16;
  std::mutex mutex_;
  std::atomic<int> most_{kAll};
  Trial trial_;
  std::atomic<bool> interrupted_{false};  // by a pass of one thread, the last
  std::thread::id thread_;
  int forced_ = 0;
  PassCounts counts_;
};
AtOnce at_once;

}  // namespace

void begin_pass(int threads) { at_once.pass(threads); }
void force_threads(int threads) { at_once.force(threads); }
PassCounts pass_counts() { return at_once.counts(); }

void run_lanes(int n, int threads, const std::function<void(int)>& lane) {
  if (in_task && n > 1) return pool->more_lanes(n, lane);
  threads = at_once.of(threads);
  if (n == 1 || threads < 2 || !take_pool()) {
    for (int i = 0; i < n; ++i) lane(i);
    return;
  }
  struct Taken {
    ~Taken() { give_pool(); }
  } taken;
  pool->run(n, threads, lane);
}

bool start_task(int threads, std::function<void()> task) {
  threads = at_once.of(threads);
  if (threads < 2 || !take_pool()) return false;
  try {
    pool->start(threads, [task] {
      in_task = true;
      task();
      in_task = false;
    });
  } catch (...) {  // no thread was to be had, or no memory
    give_pool();
    return false;
  }
  return true;
}

void finish_task() {
  pool->finish();
  give_pool();
}

}  // namespace dnl
