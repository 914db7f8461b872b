#include "backends/cuda/device.h"

#include <iterator>

namespace dnl::cuda {
namespace {

constexpr const char* kNames[] = {
#define DNL_DEVICE_KERNEL(name, Record, threads, waits) #name,
#include "backends/cuda/kernels/list.h"
#undef DNL_DEVICE_KERNEL
};
constexpr int kThreads[] = {
#define DNL_DEVICE_KERNEL(name, Record, threads, waits) threads,
#include "backends/cuda/kernels/list.h"
#undef DNL_DEVICE_KERNEL
};

const Driver* need_driver() {
  std::string why;
  const Driver* d = find_driver(&why);
  if (!d) fail(ErrorKind::Runtime, "[cuda] " + why);
  return d;
}

}  // namespace

Clock& device_clock() {
  static Clock one;
  return one;
}

int threads_of(Kernel kernel) { return kThreads[static_cast<int>(kernel)]; }

Device::Device(int ordinal, const void* image, const std::string& cublas)
    : driver_(need_driver()), cublas_file_(cublas) {
  const Driver& d = *driver_;
  check(d, d.init(0), "starting the driver");
  int count = 0, device = 0;
  check(d, d.device_count(&count), "counting GPUs");
  if (ordinal < 0 || ordinal >= count)
    fail(ErrorKind::Runtime, "[cuda] there is no GPU " + std::to_string(ordinal) + ": the driver knows " +
                                 std::to_string(count) + " (numbered from 0)");
  check(d, d.device_get(&device, ordinal), "opening the GPU");
  char name[256] = {};
  check(d, d.device_name(name, sizeof name - 1, device), "asking for the GPU's name");
  name_ = name;
  check(d, d.context_retain(&context_, device), "opening the GPU");
  enter();
  constexpr unsigned kNonBlocking = 1;
  check(d, d.stream_create(&stream_, kNonBlocking), "making a stream");
  check(d, d.module_load(&module_, image), "loading the kernels");
  for (int k = 0; k < kKernels; ++k) check(d, d.module_function(&function_[k], module_, kNames[k]), "finding a kernel");
}

DeviceAddress Device::alloc(std::size_t bytes) {
  enter();
  DeviceAddress at = 0;
  check(*driver_, driver_->memory_alloc(&at, bytes ? bytes : 1), "taking memory on the GPU");
  blocks_[at] = at + bytes;
  return at;
}
Span Device::block_of(u64 at) const {
  const auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return {at, at + 1};
  const auto block = std::prev(next);
  return {block->first, block->second};
}
void Device::free(DeviceAddress at) noexcept {
  if (!at) return;
  blocks_.erase(at);
  driver_->context_set_current(context_);
  driver_->stream_synchronize(stream_);
  driver_->memory_free(at);
}
void* Device::alloc_host(std::size_t bytes) {
  enter();
  void* p = nullptr;
  check(*driver_, driver_->host_alloc(&p, bytes, 0), "taking memory that the GPU reads");
  return p;
}
void Device::free_host(void* p) noexcept {
  if (!p) return;
  driver_->context_set_current(context_);
  driver_->host_free(p);
}

void Device::upload(DeviceAddress to, const void* from, std::size_t bytes) {
  if (!bytes) return;
  enter();
  check(*driver_, driver_->copy_to_device(to, from, bytes, stream_), "copying to the GPU");
  ++counters.uploads;
  counters.bytes_up += bytes;
}
void Device::copy_to_host(void* to, DeviceAddress from, std::size_t bytes) {
  if (!bytes) return;
  enter();
  check(*driver_, driver_->copy_to_host(to, from, bytes, stream_), "copying from the GPU");
  ++counters.downloads;
  counters.bytes_down += bytes;
}
void Device::launch(Kernel kernel, DeviceAddress records, u32 count, u32 blocks) {
  enter();
  void* arguments[] = {&records};
  const unsigned threads = static_cast<unsigned>(threads_of(kernel));
  check(*driver_,
        driver_->launch(function_[static_cast<int>(kernel)], blocks, count, 1, threads, 1, 1, 0, stream_, arguments,
                        nullptr),
        kNames[static_cast<int>(kernel)]);
  ++counters.launches;
  counters.records += count;
}
bool Device::has_cublas() {
  if (!asked_) {
    enter();
    cublas_ = Cublas::open(stream_, cublas_file_);
    asked_ = true;
  }
  return cublas_ != nullptr;
}
void Device::product(const Gemm& g) {
  enter();
  cublas_->run(g);
  ++counters.products;
}
void Device::wait() {
  enter();
  check(*driver_, driver_->stream_synchronize(stream_), "waiting for the GPU");
  ++counters.waits;
  add_times();
}
void Device::begin_stretch() {
  if (!device_clock().watched) return;
  enter();
  if (timed_ == stretches_.size()) {
    Stretch made;
    check(*driver_, driver_->event_create(&made.from, 0), "making an event");
    check(*driver_, driver_->event_create(&made.to, 0), "making an event");
    stretches_.push_back(made);
  }
  stretches_[timed_].ended = false;
  mark(stretches_[timed_++].from);
}
void Device::end_stretch() {
  if (timed_ == 0 || stretches_[timed_ - 1].ended) return;
  mark(stretches_[timed_ - 1].to);
  stretches_[timed_ - 1].ended = true;
}
void Device::add_times() {
  double sum = 0;
  for (std::size_t i = 0; i < timed_; ++i) {
    float milliseconds = 0;
    if (stretches_[i].ended && driver_->event_elapsed(&milliseconds, stretches_[i].from, stretches_[i].to) == 0)
      sum += 1e-3 * static_cast<double>(milliseconds);
  }
  timed_ = 0;
  Clock& clock = device_clock();
  clock.seconds = clock.seconds + sum;
}
Handle Device::make_mark() {
  enter();
  Handle event = nullptr;
  constexpr unsigned kNoTimes = 2;
  check(*driver_, driver_->event_create(&event, kNoTimes), "making an event");
  return event;
}
void Device::mark(Handle event) {
  enter();
  check(*driver_, driver_->event_record(event, stream_), "marking the stream");
}
void Device::wait_for(Handle event) {
  enter();
  check(*driver_, driver_->event_synchronize(event), "waiting for the GPU");
}

}  // namespace dnl::cuda
