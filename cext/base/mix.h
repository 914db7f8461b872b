// One step of a hash over words: what it is so far, with the next one. Includes: standard library only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dnl {

inline std::uint64_t mix(std::uint64_t h, std::uint64_t w) { return (h ^ w) * 0x9E3779B97F4A7C15ull ^ (h >> 29); }

// The same with n words, two at a time.
inline std::uint64_t mix_all(std::uint64_t h, const std::uint32_t* w, std::size_t n) {
  for (h = mix(h, n); n > 1; n -= 2, w += 2) {
    std::uint64_t two;
    std::memcpy(&two, w, sizeof two);
    h = mix(h, two);
  }
  return n ? mix(h, *w) : h;
}

}  // namespace dnl
