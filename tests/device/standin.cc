// A stand-in for libcuda.so.1: the driver functions that backends/cuda calls, on the host, with the same kernels.
//
// What a GPU does to a program, this does as well, and worse:
//   - its memory cannot be read or written by the host, but while the stream runs; it is full of NaN at first;
//   - the stream runs as late as it may, so a buffer that is written again too early gives wrong numbers;
//   - memory ends where it was asked to end: behind it lies a page that is never there.
// DYNET_LITE_STANDIN is a list of faults: "gpus=0", "version=11080", "capability=86", "memory=BYTES", "launches=N"
// (the launch after these fails, and all that follow), "refused=N" (the launch after these alone does, for want of
// memory), "image" (kernels cannot be loaded), and "open" (the host may read the GPU's memory).
// Built by tests/device/build.py. Includes: the kernels.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/kernels/all.h"

namespace {

enum : int { kOk = 0, kInvalid = 1, kOutOfMemory = 2, kInvalidImage = 200, kNotFound = 500, kLaunchFailed = 719 };

struct Kernel {
  const char* name;
  void (*run)(const void*);
  int threads;
  bool waits;
};
template <class Record, void (*F)(const Record*)>
void call(const void* records) {
  F(static_cast<const Record*>(records));
}
const Kernel kKernels[] = {
#define DNL_DEVICE_KERNEL(name, Record, threads, waits) \
  {#name, call<dnl::device::Record, dnl::device::name>, threads, waits},
#include "backends/cuda/kernels/list.h"
#undef DNL_DEVICE_KERNEL
};

std::map<std::string, long long>& faults() {
  static std::map<std::string, long long> all = [] {
    std::map<std::string, long long> m;
    const char* text = std::getenv("DYNET_LITE_STANDIN");
    std::string word;
    for (const char* p = text ? text : "";; ++p) {
      if (*p && *p != ',') {
        word += *p;
        continue;
      }
      const std::size_t eq = word.find('=');
      if (!word.empty()) m[word.substr(0, eq)] = eq == std::string::npos ? 1 : std::atoll(word.c_str() + eq + 1);
      word.clear();
      if (!*p) return m;
    }
  }();
  return all;
}
long long fault(const char* name, long long otherwise) {
  const auto at = faults().find(name);
  return at == faults().end() ? otherwise : at->second;
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

struct Block {
  char* pages;
  std::size_t mapped, bytes;
};
std::map<unsigned long long, Block> g_blocks;  // by address
long long g_used = 0;
const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

void open_memory(bool open) {
  static const bool always = fault("open", 0) != 0;
  if (always && !open) return;
  for (const auto& b : g_blocks)
    mprotect(b.second.pages, b.second.mapped - kPage, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
bool within(unsigned long long at, std::size_t bytes) {
  auto b = g_blocks.upper_bound(at);
  if (b == g_blocks.begin()) return false;
  --b;
  return at + bytes <= b->first + b->second.bytes;
}

// ---- the stream
// ------------------------------------------------------------------------------------------------------

struct Task {
  std::function<void()> run;
  unsigned long long number;
};
std::vector<Task> g_tasks;
unsigned long long g_number = 0;
int g_error = kOk;  // sticks, as on a GPU

void run_until(unsigned long long number) {
  std::size_t n = 0;
  while (n < g_tasks.size() && g_tasks[n].number <= number) ++n;
  if (n == 0) return;
  open_memory(true);
  for (std::size_t i = 0; i < n; ++i) g_tasks[i].run();
  open_memory(false);
  g_tasks.erase(g_tasks.begin(), g_tasks.begin() + static_cast<std::ptrdiff_t>(n));
}
template <class F>
void queue(F f) {
  g_tasks.push_back({f, ++g_number});
}
// DYNET_LITE_STANDIN_LAUNCHES names a file that gets the name of each kernel when it is first launched.
void note(const Kernel& k) {
  static const char* const file = std::getenv("DYNET_LITE_STANDIN_LAUNCHES");
  static std::set<const Kernel*> seen;
  if (!file || !seen.insert(&k).second) return;
  if (std::FILE* f = std::fopen(file, "a")) {
    std::fprintf(f, "%s\n", k.name);
    std::fclose(f);
  }
}
struct Event {
  unsigned long long number = 0;  // of the last task before it
  std::chrono::steady_clock::time_point passed;
};
char* bytes_at(unsigned long long at) { return reinterpret_cast<char*>(at); }

}  // namespace

extern "C" {

// For standin_cublas.cc.
void dnl_standin_queue(const std::function<void()>& task) { queue(task); }

int cuInit(unsigned) { return kOk; }
int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(fault("version", 12090));
  return kOk;
}
int cuDeviceGetCount(int* n) {
  *n = static_cast<int>(fault("gpus", 1));
  return kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kOk;
}
int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "stand-in");
  return kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const long long capability = fault("capability", 90);
  *value = static_cast<int>(attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 0);
  return kOk;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = static_cast<std::size_t>(fault("memory", 1ll << 34));
  return kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  static int one;
  *context = &one;
  return kOk;
}
int cuCtxSetCurrent(void*) { return g_error; }
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  cuDeviceTotalMem_v2(total, 0);
  *free = *total - static_cast<std::size_t>(g_used);
  return kOk;
}
// Ends at a page that is not there; addresses are multiples of 256.
int cuMemAlloc_v2(unsigned long long* to, std::size_t bytes) {
  if (bytes == 0) return kInvalid;
  if (g_used + static_cast<long long>(bytes) > fault("memory", 1ll << 34)) return kOutOfMemory;
  const std::size_t room = (bytes + 255) / 256 * 256, mapped = (room + kPage - 1) / kPage * kPage + kPage;
  void* p = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return kOutOfMemory;
  char* pages = static_cast<char*>(p);
  const unsigned long long at = reinterpret_cast<unsigned long long>(pages + mapped - kPage - room);
  mprotect(pages, mapped - kPage, PROT_READ | PROT_WRITE);
  std::memset(bytes_at(at), 0xff, room);
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(bytes_at(at + bytes), room - bytes);
#endif
  mprotect(pages, mapped - kPage, PROT_NONE);
  g_blocks[at] = {pages, mapped, bytes};
  g_used += static_cast<long long>(bytes);
  *to = at;
  return kOk;
}
int cuMemFree_v2(unsigned long long at) {
  const auto b = g_blocks.find(at);
  if (b == g_blocks.end()) return kInvalid;
  run_until(g_number);
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(b->second.pages, b->second.mapped);
#endif
  munmap(b->second.pages, b->second.mapped);
  g_used -= static_cast<long long>(b->second.bytes);
  g_blocks.erase(b);
  return kOk;
}
int cuMemHostAlloc(void** to, std::size_t bytes, unsigned) {
  *to = std::malloc(bytes);
  return *to ? kOk : kOutOfMemory;
}
int cuMemFreeHost(void* p) {
  run_until(g_number);
  std::free(p);
  return kOk;
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void*) {
  if (!within(to, bytes)) return kInvalid;
  queue([=] { std::memcpy(bytes_at(to), from, bytes); });
  return g_error;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void*) {
  if (!within(from, bytes)) return kInvalid;
  queue([=] { std::memcpy(to, bytes_at(from), bytes); });
  return g_error;
}
int cuStreamCreate(void** stream, unsigned) {
  static int one;
  *stream = &one;
  return kOk;
}
int cuStreamSynchronize(void*) {
  run_until(g_number);
  return g_error;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return kOk;
}
int cuEventRecord(void* event, void*) {
  Event* const e = static_cast<Event*>(event);
  queue([e] { e->passed = std::chrono::steady_clock::now(); });
  e->number = g_number;
  return g_error;
}
int cuEventSynchronize(void* event) {
  run_until(static_cast<Event*>(event)->number);
  return g_error;
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  const auto between = static_cast<Event*>(to)->passed - static_cast<Event*>(from)->passed;
  *milliseconds = std::chrono::duration<float, std::milli>(between).count();
  return g_error;
}
// No image at all, a cubin or PTX: the kernels are here anyway.
int cuModuleLoadData(void** module, const void* image) {
  static int one;
  *module = &one;
  const char* text = static_cast<const char*>(image);
  constexpr char kElf[] = {0x7f, 'E', 'L', 'F'};
  const bool fits = !*text || std::memcmp(text, kElf, sizeof kElf) == 0 || std::strstr(text, ".target");
  return fault("image", 0) || !fits ? kInvalidImage : kOk;
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  for (const Kernel& k : kKernels)
    if (std::strcmp(k.name, name) == 0) {
      *function = const_cast<Kernel*>(&k);
      return kOk;
    }
  return kNotFound;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned, void*, void** arguments, void**) {
  const Kernel& k = *static_cast<const Kernel*>(function);
  if (g_error) return g_error;
  if (grid_y > 65535 || grid_z != 1 || block_y != 1 || block_z != 1 || grid_x == 0 || grid_y == 0) return kInvalid;
  if (block_x != static_cast<unsigned>(k.threads)) return kInvalid;
  static long long launches = 0;
  if (++launches > fault("launches", 1ll << 62)) return g_error = kLaunchFailed;
  if (launches == fault("refused", -1) + 1) return kOutOfMemory;
  note(k);
  const void* records = *static_cast<void**>(arguments[0]);
  queue(
      [=] { fibers::launch(k.run, records, static_cast<int>(grid_x), static_cast<int>(grid_y), k.threads, k.waits); });
  return kOk;
}
int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case kInvalid: *name = "CUDA_ERROR_INVALID_VALUE"; return kOk;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kOk;
    case kInvalidImage: *name = "CUDA_ERROR_INVALID_IMAGE"; return kOk;
    case kNotFound: *name = "CUDA_ERROR_NOT_FOUND"; return kOk;
    case kLaunchFailed: *name = "CUDA_ERROR_LAUNCH_FAILED"; return kOk;
    default: *name = "CUDA_ERROR_UNKNOWN"; return kOk;
  }
}

}  // extern "C"
