// What NVIDIA's compiler has built in and clang lacks, for the kernels as OpenCL (opencl.py): places of threads, the
// barrier and the mathematical functions, by the names that OpenCL's library has for them.
//
// Who may include: the text that opencl.py compiles. Includes: nothing.
#pragma once

#define __CUDACC_RTC__ 1
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#pragma clang force_cuda_host_device begin

#define DNL_OPENCL extern "C" __attribute__((device))
DNL_OPENCL unsigned long _Z12get_local_idj(unsigned);
DNL_OPENCL unsigned long _Z12get_group_idj(unsigned);
DNL_OPENCL unsigned long _Z14get_num_groupsj(unsigned);
DNL_OPENCL __attribute__((convergent)) void _Z7barrierj(unsigned);

struct Place {
  unsigned x, y;
};
#define threadIdx (Place{static_cast<unsigned>(_Z12get_local_idj(0)), 0})
#define blockIdx (Place{static_cast<unsigned>(_Z12get_group_idj(0)), static_cast<unsigned>(_Z12get_group_idj(1))})
#define gridDim (Place{static_cast<unsigned>(_Z14get_num_groupsj(0)), static_cast<unsigned>(_Z14get_num_groupsj(1))})
inline void __syncthreads() { _Z7barrierj(3); }  // shared memory and the GPU's
inline void __syncwarp() { __syncthreads(); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }

// A function of OpenCL's library has the name that C++ gives to it.
#define DNL_DEVICE __attribute__((device))
#define DNL_FLOAT(name)         \
  DNL_DEVICE float name(float); \
  inline float name##f(float x) { return name(x); }
#define DNL_FLOAT2(name)               \
  DNL_DEVICE float name(float, float); \
  inline float name##f(float x, float y) { return name(x, y); }
#define DNL_DOUBLE(name) DNL_DEVICE double name(double);
DNL_FLOAT(fabs)
DNL_FLOAT(sqrt)
DNL_FLOAT(floor)
DNL_FLOAT(ceil)
DNL_FLOAT(rint)
DNL_FLOAT(exp)
DNL_FLOAT(expm1)
DNL_FLOAT(log)
DNL_FLOAT(log1p)
DNL_FLOAT(tanh)
DNL_FLOAT(erf)
DNL_FLOAT(sin)
DNL_FLOAT(cos)
DNL_FLOAT(tan)
DNL_FLOAT(asin)
DNL_FLOAT(acos)
DNL_FLOAT(atan)
DNL_FLOAT(sinh)
DNL_FLOAT(cosh)
DNL_FLOAT(asinh)
DNL_FLOAT(acosh)
DNL_FLOAT(atanh)
DNL_FLOAT2(pow)
DNL_FLOAT2(copysign)
DNL_FLOAT2(nextafter)
DNL_FLOAT2(fmax)
DNL_FLOAT2(fmin)
DNL_DOUBLE(sqrt)
DNL_DOUBLE(log)
DNL_DOUBLE(exp)
DNL_DOUBLE(floor)
DNL_DOUBLE(sin)
DNL_DOUBLE(cos)
DNL_DEVICE float fma(float, float, float);
inline float fmaf(float a, float b, float c) { return fma(a, b, c); }
