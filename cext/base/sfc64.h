// The state in which numpy.random.SFC64(seed) begins, without the tenth of a millisecond that making one takes.
//
// NumPy promises these numbers for good (NEP 19): SeedSequence spreads the seed over a pool of four words and hashes
// that into three; SFC64 (Doty-Humphrey, PractRand) then runs twelve times. Includes: base/.
#pragma once
#include "base/vec.h"

namespace dnl {

inline u32 sfc64_hash(u32 value, u32& by, u32 factor) {
  value ^= by;
  by *= factor;
  value *= by;
  return value ^ (value >> 16);
}

inline void sfc64_begin(u64 seed, u64 state[4]) {
  u32 pool[4] = {static_cast<u32>(seed), static_cast<u32>(seed >> 32), 0, 0};
  u32 by = 0x43b0d7e5;
  for (u32& word : pool) word = sfc64_hash(word, by, 0x931e8875);
  for (u32 from = 0; from < 4; ++from)
    for (u32 to = 0; to < 4; ++to) {
      if (from == to) continue;
      const u32 mixed = 0xca01f9dd * pool[to] - 0x4973f715 * sfc64_hash(pool[from], by, 0x931e8875);
      pool[to] = mixed ^ (mixed >> 16);
    }
  by = 0x8b51f9dd;
  for (u32 i = 0; i < 3; ++i) {
    const u64 low = sfc64_hash(pool[2 * i % 4], by, 0x58f38ded);
    state[i] = low | static_cast<u64>(sfc64_hash(pool[(2 * i + 1) % 4], by, 0x58f38ded)) << 32;
  }
  state[3] = 1;
  for (int k = 0; k < 12; ++k) {
    const u64 next = state[0] + state[1] + state[3]++;
    state[0] = state[1] ^ (state[1] >> 11);
    state[1] = state[2] + (state[2] << 3);
    state[2] = (state[2] << 24 | state[2] >> 40) + next;
  }
}

}  // namespace dnl
