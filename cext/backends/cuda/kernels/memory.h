// How kernels follow the addresses of records. Who may include: backends/cuda/kernels. Includes: dialect.h, records.h.
#pragma once
#include "dialect.h"
#include "records.h"

namespace dnl::device {

inline float* floats(u64 at) { return reinterpret_cast<float*>(at); }
inline bool wanted(const Rows& r) { return r.base || r.list; }
// `n` floats behind an address.
inline u64 behind(u64 at, i64 n) { return at + static_cast<u64>(n) * sizeof(float); }
inline u64 place(const Rows& r, i64 m) {
  return r.list ? reinterpret_cast<const u64*>(r.list)[m] : behind(r.base, m * r.stride);
}
inline float* row(const Rows& r, i64 m) { return floats(place(r, m)); }

// The pieces of 0 .. n-1 that this thread does, of all blocks together.
struct Stride {
  i64 first, step;
};
inline Stride stride(int threads) {
  return {static_cast<i64>(DNL_BLOCK) * threads + DNL_THREAD, static_cast<i64>(DNL_BLOCKS) * threads};
}
inline void put(float* at, float v, bool add) { *at = add ? *at + v : v; }

}  // namespace dnl::device
