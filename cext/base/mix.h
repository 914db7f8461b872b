// One step of a hash over words: what it is so far, with the next one. Includes: standard library only.
#pragma once
#include <cstdint>

namespace dnl {

inline std::uint64_t mix(std::uint64_t h, std::uint64_t w) { return (h ^ w) * 0x9E3779B97F4A7C15ull ^ (h >> 29); }

}  // namespace dnl
