// Waiting for another thread that is done soon, without going to sleep. Includes: standard library only.
#pragma once
#include <cstdint>
#include <thread>

namespace dnl {

// Tells the processor that this thread only waits: what it shares with another one is left to that. Some tens of
// nanoseconds.
inline void spin_pause() {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
  __builtin_ia32_pause();
#elif defined(__GNUC__) && defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Counts turns of a loop that waits. Where there are more threads than processors the one waited for must get its turn:
// now and then this one offers its own.
class Spin {
 public:
  void turn() { ++turns_ % kOffer ? spin_pause() : std::this_thread::yield(); }
  std::uint32_t turns() const { return turns_; }
  void again() { turns_ = 0; }

 private:
  static constexpr std::uint32_t kOffer = 1024;
  std::uint32_t turns_ = 0;
};

}  // namespace dnl
