#include "backends/cuda/driver.h"

#include <cstdlib>

#include "backends/cuda/library.h"

namespace dnl::cuda {
namespace {

#if defined(_WIN32)
constexpr const char* kName = "nvcuda.dll";
#else
constexpr const char* kName = "libcuda.so.1";
#endif

struct Found {
  Driver driver = {};
  bool there = false;
  std::string why;
};

Found find() {
  Found f;
  const char* wish = std::getenv("DYNET_LITE_LIBCUDA");
  const std::string name = wish && *wish ? wish : kName;
  void* library = open_library(name.c_str());
  if (!library) {
    f.why = "there is no NVIDIA driver (" + name + " cannot be loaded)";
    return f;
  }
  Driver& d = f.driver;
  auto take = [&](auto& to, const char* from) {
    if (!take_symbol(library, from, &to) && f.why.empty())
      f.why = "the NVIDIA driver is too old: " + name + " has no " + from;
  };
  take(d.init, "cuInit");
  take(d.driver_version, "cuDriverGetVersion");
  take(d.device_count, "cuDeviceGetCount");
  take(d.device_get, "cuDeviceGet");
  take(d.device_name, "cuDeviceGetName");
  take(d.device_attribute, "cuDeviceGetAttribute");
  take(d.device_total_memory, "cuDeviceTotalMem_v2");
  take(d.context_retain, "cuDevicePrimaryCtxRetain");
  take(d.context_set_current, "cuCtxSetCurrent");
  take(d.memory_info, "cuMemGetInfo_v2");
  take(d.memory_alloc, "cuMemAlloc_v2");
  take(d.memory_free, "cuMemFree_v2");
  take(d.host_alloc, "cuMemHostAlloc");
  take(d.host_free, "cuMemFreeHost");
  take(d.copy_to_device, "cuMemcpyHtoDAsync_v2");
  take(d.copy_to_host, "cuMemcpyDtoHAsync_v2");
  take(d.stream_create, "cuStreamCreate");
  take(d.stream_synchronize, "cuStreamSynchronize");
  take(d.event_create, "cuEventCreate");
  take(d.event_record, "cuEventRecord");
  take(d.event_synchronize, "cuEventSynchronize");
  take(d.event_elapsed, "cuEventElapsedTime");
  take(d.module_load, "cuModuleLoadData");
  take(d.module_function, "cuModuleGetFunction");
  take(d.launch, "cuLaunchKernel");
  take(d.error_name, "cuGetErrorName");
  f.there = f.why.empty();
  return f;
}

}  // namespace

const Driver* find_driver(std::string* why) {
  static const Found found = find();
  if (!found.there && why) *why = found.why;
  return found.there ? &found.driver : nullptr;
}

void check(const Driver& driver, Result result, const char* doing) {
  if (result == 0) return;
  constexpr Result kOutOfMemory = 2;
  const char* name = nullptr;
  if (driver.error_name(result, &name) != 0 || !name) name = "unknown error";
  fail(result == kOutOfMemory ? ErrorKind::Memory : ErrorKind::Runtime,
       std::string("[cuda] ") + doing + ": " + name + " (" + std::to_string(result) + ")");
}

}  // namespace dnl::cuda
