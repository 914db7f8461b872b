// Doubles that are to become floats. Included by convert.pxi only.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dnl {

/// Is none of them finite, but infinite as a float? Infinity and NaN stay what they are.
inline bool fit_floats(const double* numbers, std::size_t n) {
  // Without the sign, the bits of doubles have the order of the numbers.
  constexpr std::uint64_t top = std::uint64_t{1} << 63;
  constexpr std::uint64_t end = 0x47effffff0000000;  // the least whose nearest float is infinity
  constexpr std::uint64_t infinity = 0x7ff0000000000000;
  const auto size = [=](std::size_t i) {
    std::uint64_t bits;
    std::memcpy(&bits, numbers + i, sizeof(bits));
    return bits & ~top;
  };
  std::uint64_t some = 0;
  for (std::size_t i = 0; i < n; ++i) some |= size(i) + (top - end);  // the top bit: one is not less than `end`
  if (!(some & top)) return true;
  for (std::size_t i = 0; i < n; ++i)
    if (size(i) >= end && size(i) < infinity) return false;
  return true;
}

}  // namespace dnl
