// Bits of words. Who may include: anyone. Includes: base/vec.h.
#pragma once
#include "base/vec.h"

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace dnl {

// The number of the lowest bit that is set; one must be.
inline u32 lowest_bit(u64 bits) {
#if defined(_MSC_VER)
  unsigned long at;
  _BitScanForward64(&at, bits);
  return at;
#else
  return static_cast<u32>(__builtin_ctzll(bits));
#endif
}

// That of the highest one.
inline u32 highest_bit(u64 bits) {
#if defined(_MSC_VER)
  unsigned long at;
  _BitScanReverse64(&at, bits);
  return at;
#else
  return 63 - static_cast<u32>(__builtin_clzll(bits));
#endif
}

}  // namespace dnl
