// Wall time in seconds between laps. Includes: standard library only.
#pragma once
#include <chrono>

namespace dnl {

class Timer {
 public:
  Timer() : last_(std::chrono::steady_clock::now()) {}
  // Without asking the time where nobody will: then lap() means nothing.
  explicit Timer(bool on) {
    if (on) last_ = std::chrono::steady_clock::now();
  }
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double s = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return s;
  }

 private:
  std::chrono::steady_clock::time_point last_;
};

}  // namespace dnl
