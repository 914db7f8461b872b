// Random numbers, a function of (seed, place) alone: the generator of kernels/body_random_update.h, one number a time.
// Who may include: kernels/all.h. Includes: memory.h, functions.h.
#pragma once
#include "functions.h"
#include "memory.h"

namespace dnl::device {

inline u32 mix(u32 x) {
  x = (x ^ (x >> 16)) * 0x21f0aaadu;
  x = (x ^ (x >> 15)) * 0xd35a2d97u;
  return x ^ (x >> 15);
}
struct Random {
  u32 key0, key1;
  explicit Random(u64 seed) {
    u64 z = seed + 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    key0 = static_cast<u32>(z);
    key1 = static_cast<u32>(z >> 32);
  }
  u32 at(i64 i) const {
    return mix(mix(static_cast<u32>(i) + key0) ^ key1 ^ static_cast<u32>(static_cast<u64>(i) >> 32));
  }
  float unit(i64 i) const { return static_cast<float>(at(i) >> 8) * 5.9604644775390625e-8f; }
};

template <int N>
inline float polynomial(float x, const float (&c)[N]) {
  float p = c[0];
  for (int i = 1; i < N; ++i) p = fmaf(x, p, c[i]);
  return p;
}
// The normal quantile, as there (Giles 2010).
inline float normal(u32 b) {
  const float tail =
      fmaf(static_cast<float>((b & 0x7fffffffu) >> 8), 256.0f, static_cast<float>(b & 0xffu) + 0.5f) * 4.656612873e-10f;
  const float t = vmin(tail, 1.0f), x = 1.0f - t, q = -vlog(t * (2.0f - t));
  const float near[] = {2.81022636e-08f, 3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                        -0.00125372503f, -0.00417768164f, 0.246640727f,    1.50140941f};
  const float far[] = {-0.000200214257f, 0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                       -0.0076224613f,   0.00943887047f,  1.00167406f,    2.83297682f};
  const float p = q < 5.0f ? polynomial(q - 2.5f, near) : polynomial(vsqrt(vmax(q, 0.0f)) - 3.0f, far);
  const float z = p * x * 1.41421356237309505f;
  return b >> 31 ? -z : z;
}

DNL_KERNEL(random_numbers, RandomNumbers) {
  const RandomNumbers& r = records[DNL_RECORD];
  const Random random(r.seed);
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.n; i += s.step) {
    float v;
    if (r.what == kNormal) {
      v = fmaf(normal(random.at(i)), r.b, r.a);
    } else if (r.what == kUniform) {
      v = fmaf(random.unit(i), r.b - r.a, r.a);
      if (r.a < r.b) v = vmin(v, nextafterf(r.b, r.a));
    } else if (r.what == kGumbel) {
      const double u = random.unit(i) + 1.4901161193847656e-8;  // inside (0, 1)
      v = static_cast<float>(r.a - r.b * log(-log(u < 1 ? u : 1 - 1.4901161193847656e-8)));
    } else {
      v = random.unit(i) < r.a ? r.b : 0.0f;
    }
    floats(r.y)[i] = v;
  }
}

}  // namespace dnl::device
