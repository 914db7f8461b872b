// Waiting for what other threads of the process do, where these may have lost their processors to other programs.
//
// Who waits turns round in place, for to sleep and be woken takes a thread longer than most waiting. But a thread that
// has lost its processor stands still for milliseconds. So who waits looks now and then at the clocks of those that are
// at work, and while one stands still lends it the processor that he turns on (Linux), and sleeps. Who waits and where
// threads run changes no result. Who may include: everybody. Includes: base/.
#pragma once
#include <cstdint>

#include "base/spin.h"

namespace dnl {

// This thread does, within a scope, what others may wait for. Scopes may be nested: a processor that was lent is left
// at the end of each.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  bool outermost_;
};

// for (Wait wait; !ready;) wait.turn();
class Wait {
 public:
  void turn() {
    if (++turns_ % kLook)
      spin_pause();
    else
      look();
  }

 private:
  static constexpr std::uint32_t kLook = 512;  // some 10 microseconds
  void look();

  std::uint32_t turns_ = 0;
  void* watched_ = nullptr;  // a thread at work, and its clock at the last look
  std::int64_t clock_ = 0;
  std::int64_t ran_ = 0;  // the clock of this thread at the last look
};

// Where this thread runs, and how many processors it may use. -1 and 0 where that cannot be told.
int this_processor();
int processors_allowed();
// A thread that was woken may find itself where the one that woke it runs: it goes to another processor if it may.
void leave_processor(int cpu);

// Nanoseconds that this thread has run without waiting. Waiting of less than some 10 microseconds counts, too. -1 where
// that cannot be told.
std::int64_t time_worked();

// The share of the time since begin() in which this thread did not run. 0 where that cannot be told.
class LostTime {
 public:
  void begin();
  double share() const;

 private:
  std::int64_t wall_ = 0, clock_ = 0;
};

// How often a thread of the process lent its processor.
std::uint64_t times_lent();

}  // namespace dnl
