#include "base/wait.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

namespace dnl {

#if defined(__linux__)

namespace {

std::int64_t read_clock(clockid_t id) {
  timespec t;
  return clock_gettime(id, &t) ? 0 : std::int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// A set of processors. Where there are more than it holds, read() fails, and nothing is lent.
class Processors {
 public:
  Processors() { CPU_ZERO(&set_); }
  static Processors only(int cpu) {
    Processors p;
    CPU_SET(cpu, &p.set_);
    return p;
  }
  Processors without(int cpu) const {
    Processors p = *this;
    CPU_CLR(cpu, &p.set_);
    return p;
  }
  bool has(int cpu) const { return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set_); }
  int count() const { return CPU_COUNT(&set_); }
  bool read(pid_t thread) { return !sched_getaffinity(thread, sizeof set_, &set_); }
  bool give(pid_t thread) const { return !sched_setaffinity(thread, sizeof set_, &set_); }

 private:
  cpu_set_t set_;
};

// What others know of a thread that has been at work.
struct Place {
  std::atomic<bool> taken{false};
  std::atomic<bool> at_work{false};  // relaxed: nobody must rely on it for what the work has written
  // These two before it is at work for the first time. Who looks may see them change: another thread has the place by
  // now.
  std::atomic<clockid_t> clock{0};
  std::atomic<pid_t> thread{0};
  std::mutex mutex;  // of the rest, and of the end of its work
  int borrowed = -1;
  Processors own;  // those that it may use, while another has lent it one
};

// Those of the process. Threads beyond are waited for all the same, but nobody sees that they stand still.
constexpr int kPlaces = 64;
Place places[kPlaces];
std::atomic<int> used_places{0};
std::atomic<int> forks{0};  // of this process from its first ancestor
std::atomic<std::uint64_t> lent{0};
thread_local std::int64_t waited = 0;  // nanoseconds that it ran and waited

// A child has one thread: nobody else is at work, and its own place has the clock of a thread of the parent.
void after_fork() {
  for (Place& p : places) new (&p) Place;
  used_places.store(0);
  forks.fetch_add(1);
}

// The calling thread's place as long as it lives.
class MyPlace {
 public:
  Place* get() {
    if (forks_ != forks.load(std::memory_order_relaxed)) take();
    return place_;
  }
  ~MyPlace() {
    if (place_ && forks_ == forks.load(std::memory_order_relaxed)) place_->taken.store(false);
  }

 private:
  void take() {
    static const int watched = pthread_atfork(nullptr, nullptr, after_fork);
    place_ = nullptr;
    forks_ = forks.load(std::memory_order_relaxed);
    for (int i = 0; i < kPlaces && !watched; ++i) {
      if (places[i].taken.exchange(true)) continue;
      clockid_t clock;
      if (pthread_getcpuclockid(pthread_self(), &clock)) return places[i].taken.store(false);
      places[i].clock = clock;
      places[i].thread = static_cast<pid_t>(syscall(SYS_gettid));
      place_ = &places[i];
      for (int n = used_places.load(); n <= i && !used_places.compare_exchange_weak(n, i + 1);) {}
      return;
    }
  }

  int forks_ = -1;
  Place* place_ = nullptr;
};
thread_local MyPlace my_place;

// A thread that stands still gets the processor of the calling thread, which goes to sleep.
void lend(Place& p) {
  const std::lock_guard<std::mutex> lock(p.mutex);
  const int cpu = sched_getcpu();
  if (p.borrowed >= 0 || !p.at_work.load(std::memory_order_relaxed) || !p.own.read(p.thread)) return;
  if (p.own.count() < 2 || !p.own.has(cpu) || !Processors::only(cpu).give(p.thread)) return;
  p.borrowed = cpu;
  lent.fetch_add(1, std::memory_order_relaxed);
}

// The calling thread leaves the processor that was lent to it, at once, and may then use those that it had before.
void leave(Place& p) {
  p.own.without(p.borrowed).give(0);
  p.own.give(0);
  p.borrowed = -1;
}

}  // namespace

AtWork::AtWork() : outermost_(false) {
  Place* const p = my_place.get();
  if (!p || p->at_work.load(std::memory_order_relaxed)) return;
  outermost_ = true;
  p->at_work.store(true, std::memory_order_relaxed);
}

AtWork::~AtWork() {
  Place* const p = my_place.get();
  if (!p) return;
  const std::lock_guard<std::mutex> lock(p->mutex);
  if (outermost_) p->at_work.store(false, std::memory_order_relaxed);
  if (p->borrowed >= 0) leave(*p);
}

// One of those at work is watched, until it is done.
void Wait::look() {
  const std::int64_t ran = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (ran_) waited += ran - ran_;
  ran_ = ran;
  Place* const mine = my_place.get();
  Place* watched = static_cast<Place*>(watched_);
  auto at_work = [&](Place& p) { return &p != mine && p.at_work.load(std::memory_order_relaxed); };
  if (watched && !at_work(*watched)) watched = nullptr;
  for (int i = 0, n = used_places.load(std::memory_order_acquire); i < n && !watched; ++i)
    if (at_work(places[i])) watched = &places[i];
  const std::int64_t clock = watched ? read_clock(watched->clock) : 0;
  const bool still = clock && watched == watched_ && clock == clock_;
  watched_ = watched;
  clock_ = clock;
  if (!still) return;
  lend(*watched);
  const bool working =
      mine && mine->at_work.exchange(false, std::memory_order_relaxed);  // nobody lends to one who waits
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (working) mine->at_work.store(true, std::memory_order_relaxed);
}

int this_processor() { return sched_getcpu(); }

int processors_allowed() {
  Processors p;
  return p.read(0) ? p.count() : 0;
}

void leave_processor(int cpu) {
  Place* const p = my_place.get();
  if (!p || cpu < 0 || cpu != sched_getcpu()) return;
  const std::lock_guard<std::mutex> lock(p->mutex);
  if (p->borrowed >= 0 || !p->own.read(0) || p->own.count() < 2) return;
  p->borrowed = cpu;
  leave(*p);
}

void LostTime::begin() {
  wall_ = read_clock(CLOCK_MONOTONIC);
  clock_ = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double LostTime::share() const {
  const std::int64_t wall = read_clock(CLOCK_MONOTONIC) - wall_;
  const std::int64_t ran = read_clock(CLOCK_THREAD_CPUTIME_ID) - clock_;
  return ran < wall ? double(wall - ran) / double(wall) : 0;
}

std::int64_t time_worked() { return read_clock(CLOCK_THREAD_CPUTIME_ID) - waited; }

std::uint64_t times_lent() { return lent.load(std::memory_order_relaxed); }

#else

AtWork::AtWork() : outermost_(false) {}
AtWork::~AtWork() {}
void Wait::look() { std::this_thread::yield(); }
int this_processor() { return -1; }
int processors_allowed() { return 0; }
void leave_processor(int) {}
void LostTime::begin() {}
double LostTime::share() const { return 0; }
std::int64_t time_worked() { return -1; }
std::uint64_t times_lent() { return 0; }

#endif

}  // namespace dnl
