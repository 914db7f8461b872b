// A card: its memory, its stream and its kernels. One a process, opened when it is first wanted.
//
// All work goes to one stream in order; nothing here waits but download() and free(). Not thread-safe: the backend has
// a lock. Errors are thrown (driver.h). Who may include: backends/cuda. Includes: driver.h.
#pragma once
#include <string>

#include "backends/cuda/driver.h"
#include "base/vec.h"

namespace dnl::cuda {

// The kernels by number, in the order of kernels/list.h.
enum class Kernel : u8 {
#define DNL_DEVICE_KERNEL(name, Record, threads, waits) name,
#include "backends/cuda/kernels/list.h"
#undef DNL_DEVICE_KERNEL
  count
};
constexpr int kKernels = static_cast<int>(Kernel::count);

// What was asked of the card since the process began.
struct Counters {
  u64 launches = 0, records = 0, uploads = 0, bytes_up = 0, downloads = 0, bytes_down = 0, waits = 0;
};

class Device {
 public:
  // Throws Error(Runtime) that says why there is no card, or why it cannot be used. `image`: kernels for it, as the
  // driver loads them (a cubin, a fat binary or PTX).
  Device(int ordinal, const void* image);

  DeviceAddress alloc(std::size_t bytes);
  // Waits. A card that fails is not asked why: what has memory is going.
  void free(DeviceAddress at) noexcept;
  void* alloc_host(std::size_t bytes);  // which copies read while the program goes on
  void free_host(void* p) noexcept;
  // The bytes at `from` must stay as they are until the stream has come by.
  void upload(DeviceAddress to, const void* from, std::size_t bytes);
  void download(void* to, DeviceAddress from, std::size_t bytes);  // waits
  // The kernel over an array of records; blocks for each.
  void launch(Kernel kernel, DeviceAddress records, u32 count, u32 blocks);
  void wait();
  // Marks a place in the stream, and waits until the stream has passed it.
  Handle make_mark();
  void mark(Handle event);
  void wait_for(Handle event);

  const std::string& name() const { return name_; }
  Counters counters;

 private:
  // The driver's context is of a thread; any may call.
  void enter() const { check(*driver_, driver_->context_set_current(context_), "choosing the card"); }

  const Driver* driver_;
  Handle context_ = nullptr, stream_ = nullptr, module_ = nullptr;
  Handle function_[kKernels] = {};
  std::string name_;
};

// Threads of a block.
int threads_of(Kernel kernel);

}  // namespace dnl::cuda
