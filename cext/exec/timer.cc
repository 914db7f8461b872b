#include "exec/timer.h"

#ifdef DNL_COUNTER
#include <cpuid.h>
#endif

namespace dnl {
namespace {

using Clock = std::chrono::steady_clock;

bool counts_evenly() {
#ifdef DNL_COUNTER
  constexpr unsigned kAbout = 0x80000007, kInvariant = 1u << 8;
  unsigned a, b, c, d;
  return __get_cpuid(kAbout, &a, &b, &c, &d) && (d & kInvariant);
#else
  return false;
#endif
}

}  // namespace

const bool g_counts_evenly = counts_evenly();

namespace {
const Clock::time_point began = Clock::now();
const std::uint64_t began_ticks = ticks();
}  // namespace

// The counter is compared with the clock over the life of the process.
double seconds(double n) {
  using Seconds = std::chrono::duration<double>;
  if (!g_counts_evenly) return n * Seconds(Clock::duration(1)).count();
  const std::uint64_t now = ticks();
  const double ran = Seconds(Clock::now() - began).count();
  return now > began_ticks ? n * (ran / static_cast<double>(now - began_ticks)) : 0;
}

}  // namespace dnl
