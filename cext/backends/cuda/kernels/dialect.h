// The dialect that device kernels are written in: C++17 that NVIDIA's compiler and the host's compile from one text.
//
// A kernel sees an array of records (records.h), one for each piece of work that was put into its launch, and is run
// by blocks of a fixed number of threads: blockIdx.y is the record, blockIdx.x a piece of it. Threads of a block share
// memory (DNL_SHARED) and wait for one another: at a DNL_BARRIER, which all of them must reach, or at a
// DNL_WARP_BARRIER for the 32 threads of their warp, which all threads must reach equally often (elsewhere than on a
// GPU it is the other barrier). No atomics, no other functions of warps: sums have a fixed order, so that the same
// program gives the same bits. Who may include: backends/cuda/kernels, and what runs them on the host (tests/device).
// Includes: nothing, or fibers.
#pragma once

#if defined(__CUDACC_RTC__)  // compiled with --default-device: functions without a mark are the device's

using u8 = unsigned char;
using u32 = unsigned int;
using i32 = int;
using u64 = unsigned long long;
using i64 = long long;

#define DNL_KERNEL(name, Record) extern "C" __global__ void name(const Record* records)
#define DNL_SHARED __shared__
#define DNL_BARRIER() __syncthreads()
#define DNL_WARP_BARRIER() __syncwarp()
// The loop behind it: whole, or by so many where more at once would take too many registers.
#define DNL_UNROLL _Pragma("unroll")
#define DNL_UNROLL_BY_4 _Pragma("unroll 4")
#define DNL_UNROLL_BY_8 _Pragma("unroll 8")
#define DNL_THREAD static_cast<int>(threadIdx.x)
#define DNL_BLOCK static_cast<int>(blockIdx.x)
#define DNL_BLOCKS static_cast<int>(gridDim.x)
#define DNL_RECORD static_cast<int>(blockIdx.y)
#define DNL_INFINITY __int_as_float(0x7f800000)
#define DNL_NAN __int_as_float(0x7fffffff)

#else

#include <cmath>
#include <cstdint>

#include <fibers.h>  // of whoever runs kernels on the host

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

#define DNL_KERNEL(name, Record) void name(const Record* records)
#define DNL_SHARED DNL_FIBERS_SHARED
#define DNL_BARRIER() fibers::barrier()
#define DNL_WARP_BARRIER() fibers::barrier()
#define DNL_UNROLL
#define DNL_UNROLL_BY_4
#define DNL_UNROLL_BY_8
#define DNL_THREAD fibers::thread
#define DNL_BLOCK fibers::block
#define DNL_BLOCKS fibers::blocks
#define DNL_RECORD fibers::record
#define DNL_INFINITY __builtin_inff()
#define DNL_NAN __builtin_nanf("")

#endif
