// The functions that formulas are made of (kernels/formulas.h), on one float: those of kernels/mathfn.h.
//
// Who may include: backends/cuda/kernels. Includes: dialect.h.
#pragma once
#include "dialect.h"

namespace dnl::device {

inline float select(bool which, float a, float b) { return which ? a : b; }
// As the vector instructions do: the second operand where one is NaN.
inline float vmax(float a, float b) { return a > b ? a : b; }
inline float vmin(float a, float b) { return a < b ? a : b; }
inline float vabs(float x) { return fabsf(x); }
inline float vsqrt(float x) { return sqrtf(x); }
inline float vfloor(float x) { return floorf(x); }
inline float vceil(float x) { return ceilf(x); }
inline float vrint(float x) { return rintf(x); }
inline float vcopysign(float x, float sign) { return copysignf(x, sign); }
inline float vexp(float x) { return expf(x); }
inline float vexpm1(float x) { return expm1f(x); }
inline float vlog(float x) { return logf(x); }
inline float vlog1p(float x) { return log1pf(x); }
inline float vtanh(float x) { return tanhf(x); }
// From the side where exp does not overflow.
inline float vsigmoid(float x) {
  const float e = expf(-fabsf(x));
  return x >= 0 ? 1.0f / (1.0f + e) : x < 0 ? e / (1.0f + e) : x;
}
inline float vgate(float x) { return vsigmoid(x); }
inline float vsoftplus(float x) { return vmax(0.0f, x) + log1pf(expf(-fabsf(x))); }
inline float verf(float x) { return erff(x); }
inline float vsin(float x) { return sinf(x); }
inline float vcos(float x) { return cosf(x); }
inline float vtan(float x) { return tanf(x); }
inline float vasin(float x) { return asinf(x); }
inline float vacos(float x) { return acosf(x); }
inline float vatan(float x) { return atanf(x); }
inline float vsinh(float x) { return sinhf(x); }
inline float vcosh(float x) { return coshf(x); }
inline float vasinh(float x) { return asinhf(x); }
inline float vacosh(float x) { return acoshf(x); }
inline float vatanh(float x) { return atanhf(x); }
inline float vpow(float x, float y) { return powf(x, y); }

#define kInf DNL_INFINITY
#define kNan DNL_NAN
#include "kernels/gamma.h"
#undef kInf
#undef kNan
inline float vlgamma(float x) { return lgamma1(x); }
inline float vdigamma(float x) { return digamma1(x); }

}  // namespace dnl::device
