// Whether several threads are faster than one, as measured.
//
// Other programs may want the processors. Then threads wait for those that were stopped, and one thread may be faster.
// What decides is how much time goes by for each second of work: what all threads of the engine computed, without their
// waiting. While several threads need clearly less than a second for it, nothing is tried. Else both ways are, in
// turns: a window of time each, then the better one for a while, which grows as long as it stays the better one. What
// is computed does not depend on it: lanes are dealt as before, and one thread runs them in turn.
//
// Pure: times are given. Who may include: exec/, bindings/. Includes: standard library only.
#pragma once
#include <cstdint>

namespace dnl {

class Trial {
 public:
  // At the start of a pass: both count from any beginning, in nanoseconds. Then several() may have changed.
  void begin_pass(std::int64_t time, std::int64_t work);
  // What follows has nothing to do with what was before: another thread begins passes, or one without workers.
  void interrupt() { open_ = false; }
  bool several() const { return several_; }

 private:
  static constexpr std::int64_t kWindow = 50'000'000;  // at least, and some passes
  static constexpr int kPasses = 2;
  static constexpr int kFirst = 4, kMost = 32;  // for so many windows the better way is kept
  // Threads that run at once take longer for the same work: what they take counts as so much more. One thread never
  // takes less than a second for a second of work.
  static constexpr double kEqual = 0.92;

  void judge(double cost);

  bool several_ = true, open_ = false;
  bool trying_ = false;                // this way, for a window
  double cost_[2] = {0, 0};            // of one thread, and of several; 0: not known
  int keep_ = kFirst, left_ = kFirst;  // windows of the better way, and how many of them are to come
  std::int64_t time_ = 0, work_ = 0;   // at the beginning of the window
  int passes_ = 0;
};

}  // namespace dnl
