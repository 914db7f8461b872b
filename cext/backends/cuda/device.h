// A GPU: its memory, its stream and its kernels. One a process, opened when it is first wanted.
//
// All work goes to one stream in order; nothing here waits but wait() and free(). Not thread-safe: the backend has
// a lock. Errors are thrown (driver.h). Who may include: backends/cuda. Includes: driver.h, cublas.h,
// traffic.h.
#pragma once
#include <atomic>
#include <memory>
#include <map>
#include <string>

#include "backends/cuda/cublas.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/traffic.h"
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

// What was asked of the GPU since the process began.
struct Counters {
  u64 launches = 0, records = 0, uploads = 0, bytes_up = 0, downloads = 0, bytes_down = 0, waits = 0;
  u64 products = 0;  // that cuBLAS made
};

// How long the GPU was at work on what has been waited for, from the first launch of each flush to the end of its
// last. Only while somebody watches: the marks cost a little.
struct Clock {
  std::atomic<bool> watched{false};
  std::atomic<double> seconds{0};
};
Clock& device_clock();

class Device {
 public:
  // Throws Error(Runtime) that says why there is no GPU, or why it cannot be used. `image`: kernels for it, as the
  // driver loads them (a cubin, a fat binary or PTX). `cublas`: where that library may lie besides where the system
  // looks.
  Device(int ordinal, const void* image, const std::string& cublas = "");

  DeviceAddress alloc(std::size_t bytes);
  // The block that this address lies in.
  Span block_of(u64 at) const;
  // Waits. A GPU that fails is not asked why: what has memory is going.
  void free(DeviceAddress at) noexcept;
  void* alloc_host(std::size_t bytes);  // which copies read while the program goes on
  void free_host(void* p) noexcept;
  // The bytes at `from` must stay as they are until the stream has come by.
  void upload(DeviceAddress to, const void* from, std::size_t bytes);
  // There after a wait.
  void copy_to_host(void* to, DeviceAddress from, std::size_t bytes);
  // The kernel over an array of records; blocks for each.
  void launch(Kernel kernel, DeviceAddress records, u32 count, u32 blocks);
  // Whether there is a cuBLAS: looked for at the first question.
  bool has_cublas();
  void product(const Gemm& g);
  // Around what is to be timed.
  void begin_stretch();
  void end_stretch();
  void wait();
  // Marks a place in the stream, and waits until the stream has passed it.
  Handle make_mark();
  void mark(Handle event);
  void wait_for(Handle event);

  const std::string& name() const { return name_; }
  Counters counters;

 private:
  // The driver's context is of a thread; any may call.
  void enter() const { check(*driver_, driver_->context_set_current(context_), "choosing the GPU"); }

  const Driver* driver_;
  std::map<u64, u64> blocks_;  // what alloc() gave: where it begins, where it ends
  Handle context_ = nullptr, stream_ = nullptr, module_ = nullptr;
  Handle function_[kKernels] = {};
  struct Stretch {
    Handle from = nullptr, to = nullptr;
    bool ended = false;
  };
  Vec<Stretch> stretches_;  // events with times; those behind timed_ are free
  std::size_t timed_ = 0;
  void add_times();
  std::string name_, cublas_file_;
  bool asked_ = false;
  std::unique_ptr<Cublas> cublas_;
};

// Threads of a block.
int threads_of(Kernel kernel);

}  // namespace dnl::cuda
