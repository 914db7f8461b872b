// The functions of NVIDIA's driver that this backend calls, found at run time: nothing is linked, nothing is installed.
//
// Types are those of the driver's interface, written down here so that no header of NVIDIA's is needed.
// Who may include: backends/cuda. Includes: base/.
#pragma once
#include <string>

#include "base/check.h"
#include "base/dim.h"

namespace dnl::cuda {

using Result = int;  // 0: no error
using DeviceAddress = unsigned long long;
using Handle = void*;  // a context, stream, event, module or function

struct Driver {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int*);
  Result (*device_count)(int*);
  Result (*device_get)(int* device, int ordinal);
  Result (*device_name)(char*, int length, int device);
  Result (*device_attribute)(int*, int attribute, int device);
  Result (*device_total_memory)(std::size_t*, int device);
  Result (*context_retain)(Handle*, int device);
  Result (*context_set_current)(Handle);
  Result (*memory_info)(std::size_t* free, std::size_t* total);
  Result (*memory_alloc)(DeviceAddress*, std::size_t);
  Result (*memory_free)(DeviceAddress);
  Result (*host_alloc)(void**, std::size_t, unsigned flags);
  Result (*host_free)(void*);
  Result (*copy_to_device)(DeviceAddress, const void*, std::size_t, Handle stream);
  Result (*copy_to_host)(void*, DeviceAddress, std::size_t, Handle stream);
  Result (*stream_create)(Handle*, unsigned flags);
  Result (*stream_synchronize)(Handle);
  Result (*event_create)(Handle*, unsigned flags);
  Result (*event_record)(Handle, Handle stream);
  Result (*event_synchronize)(Handle);
  Result (*event_elapsed)(float* milliseconds, Handle from, Handle to);
  Result (*module_load)(Handle*, const void* image);
  Result (*module_function)(Handle*, Handle module, const char* name);
  Result (*launch)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, Handle stream, void** arguments, void** extra);
  Result (*error_name)(Result, const char**);
};

// The driver, or null and why there is none: no library, or one that lacks a function. DYNET_LITE_LIBCUDA names the
// file (tests put a stand-in there); else libcuda.so.1 or nvcuda.dll.
const Driver* find_driver(std::string* why);

// Throws what a call that failed says: Error(Memory) when the device is full, else Error(Runtime).
void check(const Driver& driver, Result result, const char* doing);

}  // namespace dnl::cuda
