// The engine's generator: one 64-bit state that gives each random node its seed, and initializers their numbers.
//
// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). Values inside a node come from
// the counter-based kernels (kernels.h), so they do not depend on the order in which nodes run.
// Includes: base/.
#pragma once
#include "base/vec.h"

namespace dnl {

inline u64 splitmix64(u64& state) {
  u64 z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

}  // namespace dnl
