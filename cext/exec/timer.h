// Wall time in seconds between laps, by the processor's own counter where it counts evenly: to ask the system for the
// time takes longer than a small op. Includes: standard library only.
#pragma once
#include <chrono>
#include <cstdint>

#if defined(__GNUC__) && defined(__x86_64__)
#define DNL_COUNTER() __builtin_ia32_rdtsc()
#endif

namespace dnl {

extern const bool g_counts_evenly;

// Since some beginning.
inline std::uint64_t ticks() {
#ifdef DNL_COUNTER
  if (g_counts_evenly) return DNL_COUNTER();
#endif
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
// How long so many ticks take.
double seconds(double ticks);

// Laps are in ticks.
class Timer {
 public:
  Timer() : last_(ticks()) {}
  // Without asking the time where nobody will: then lap() means nothing.
  explicit Timer(bool on) {
    if (on) last_ = ticks();
  }
  double lap() {
    const std::uint64_t now = ticks(), before = last_;
    last_ = now;
    return now < before ? 0 : static_cast<double>(now - before);
  }

 private:
  std::uint64_t last_ = 0;
};

}  // namespace dnl
