#include "exec/pool.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace dnl {
namespace {

int process_id() {
#ifdef _WIN32
  return 0;  // no fork
#else
  return static_cast<int>(getpid());
#endif
}

class Pool {
 public:
  explicit Pool(int pid) : pid_(pid) {}
  int pid() const { return pid_; }

  void run(int n, const std::function<void(int)>& lane) {
    while (static_cast<int>(workers_.size()) < n - 1) add_worker();
    job_ = &lane;
    lanes_ = n;
    left_.store(n - 1, std::memory_order_relaxed);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      round_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    lane(0);
    for (int spin = 0; left_.load(std::memory_order_acquire) > 0; ++spin)
      if (spin > 20000) std::this_thread::yield();
  }

 private:
  // Workers live as long as the process: the pool is never destroyed.
  void add_worker() {
    const int index = static_cast<int>(workers_.size()) + 1;
    const unsigned seen = round_.load(std::memory_order_acquire);
    workers_.emplace_back([this, index, seen] { work(index, seen); });
    workers_.back().detach();
  }
  void work(int index, unsigned seen) {
    for (;;) {
      for (int spin = 0; round_.load(std::memory_order_acquire) == seen && spin < 20000; ++spin) {}
      if (round_.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return round_.load(std::memory_order_relaxed) != seen; });
      }
      seen = round_.load(std::memory_order_acquire);
      if (index >= lanes_) continue;
      (*job_)(index);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

  const int pid_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<unsigned> round_{0};
  std::atomic<int> left_{0};
  const std::function<void(int)>* job_ = nullptr;
  int lanes_ = 0;
};

}  // namespace

void run_lanes(int n, const std::function<void(int)>& lane) {
  static std::mutex in_use;
  static Pool* pool = nullptr;
  if (n == 1) return lane(0);
  std::unique_lock<std::mutex> mine(in_use, std::try_to_lock);
  if (!mine.owns_lock()) {
    for (int i = 0; i < n; ++i) lane(i);
    return;
  }
  // A forked child has the pool's memory but none of its threads: it starts anew.
  if (!pool || pool->pid() != process_id()) pool = new Pool(process_id());
  pool->run(n, lane);
}

}  // namespace dnl
