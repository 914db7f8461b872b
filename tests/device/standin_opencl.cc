// A stand-in for libcuda.so.1 that hands the kernels to OpenCL: to PoCL, a compiler that is not the host's, or to
// oclgrind, which runs them by hand and tells of races, of reads of what nobody wrote and of what lies outside.
//
// DYNET_LITE_OPENCL names the library with OpenCL's functions, DYNET_LITE_OPENCL_PROGRAM the kernels (opencl.py).
// DYNET_LITE_STANDIN_LAUNCHES names a file that gets the name of each kernel when it is first launched. Everything is
// done at once: lateness is the other stand-in's business. Includes: the list of kernels.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using u32 = unsigned int;
using u64 = unsigned long long;
using Handle = void*;
enum : int { kOk = 0, kInvalid = 1, kOutOfMemory = 2, kInvalidImage = 200, kNotFound = 500, kLaunchFailed = 719 };

struct Kernel {
  const char* name;
  unsigned threads;
  Handle handle = nullptr;
};
Kernel g_kernels[] = {
#define DNL_DEVICE_KERNEL(name, Record, threads, waits) {#name, threads},
#include "backends/cuda/kernels/list.h"
#undef DNL_DEVICE_KERNEL
};

[[noreturn]] void end(const std::string& why) {
  std::fprintf(stderr, "stand-in: %s\n", why.c_str());
  std::_Exit(70);
}
template <class F>
F* function(const char* name) {
  const char* file = std::getenv("DYNET_LITE_OPENCL");
  static Handle library = dlopen(file && *file ? file : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  Handle found = library ? dlsym(library, name) : nullptr;
  if (!found) end(std::string("no ") + name + ": " + dlerror());
  return reinterpret_cast<F*>(found);
}
#define DNL_CL(name, ...) static const auto name = function<int(__VA_ARGS__)>(#name)
#define DNL_CL_MAKES(name, ...) static const auto name = function<Handle(__VA_ARGS__)>(#name)
void must(int error, const char* what) {
  if (error) end(std::string(what) + ": OpenCL error " + std::to_string(error));
}

struct OpenCL {
  Handle device = nullptr, context = nullptr, queue = nullptr, program = nullptr, address_of = nullptr;

  OpenCL() {
    DNL_CL(clGetPlatformIDs, u32, Handle*, u32*);
    DNL_CL(clGetDeviceIDs, Handle, u64, u32, Handle*, u32*);
    DNL_CL_MAKES(clCreateContext, const void*, u32, Handle*, Handle, Handle, int*);
    DNL_CL_MAKES(clCreateCommandQueue, Handle, Handle, u64, int*);
    Handle platform = nullptr;
    constexpr u64 kAll = 0xffffffff;
    must(clGetPlatformIDs(1, &platform, nullptr), "platforms");
    must(clGetDeviceIDs(platform, kAll, 1, &device, nullptr), "devices");
    int error = 0;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    must(error, "context");
    queue = clCreateCommandQueue(context, device, 0, &error);
    must(error, "queue");
    build();
    address_of = kernel("dnl_address_of");
    for (Kernel& k : g_kernels) k.handle = kernel(k.name);
  }
  void build() {
    DNL_CL_MAKES(clCreateProgramWithBinary, Handle, u32, Handle*, const std::size_t*, const unsigned char**, int*,
                 int*);
    DNL_CL(clBuildProgram, Handle, u32, Handle*, const char*, Handle, Handle);
    DNL_CL(clGetProgramBuildInfo, Handle, Handle, u32, std::size_t, void*, std::size_t*);
    const char* name = std::getenv("DYNET_LITE_OPENCL_PROGRAM");
    std::ifstream file(name ? name : "", std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    const std::string bytes = text.str();
    const std::size_t size = bytes.size();
    const unsigned char* data = reinterpret_cast<const unsigned char*>(bytes.data());
    int status = 0, error = 0;
    program = clCreateProgramWithBinary(context, 1, &device, &size, &data, &status, &error);
    must(error, "program");
    if (clBuildProgram(program, 1, &device, "-x spir -spir-std=1.2", nullptr, nullptr) == 0) return;
    std::vector<char> log(1 << 16);
    constexpr u32 kBuildLog = 0x1183;
    clGetProgramBuildInfo(program, device, kBuildLog, log.size() - 1, log.data(), nullptr);
    end(std::string("the program cannot be built: ") + log.data());
  }
  Handle kernel(const char* name) const {
    DNL_CL_MAKES(clCreateKernel, Handle, const char*, int*);
    int error = 0;
    Handle made = clCreateKernel(program, name, &error);
    must(error, name);
    return made;
  }
  Handle buffer(std::size_t bytes, int* error) const {
    DNL_CL_MAKES(clCreateBuffer, Handle, u64, std::size_t, void*, int*);
    constexpr u64 kReadWrite = 1;
    return clCreateBuffer(context, kReadWrite, bytes, nullptr, error);
  }
  void argument(Handle of, u32 number, std::size_t bytes, const void* value) const {
    DNL_CL(clSetKernelArg, Handle, u32, std::size_t, const void*);
    must(clSetKernelArg(of, number, bytes, value), "argument");
  }
  int run(Handle what, std::size_t x, std::size_t y, std::size_t block) const {
    DNL_CL(clEnqueueNDRangeKernel, Handle, Handle, u32, const std::size_t*, const std::size_t*, const std::size_t*, u32,
           Handle, Handle);
    DNL_CL(clFinish, Handle);
    const std::size_t all[] = {x * block, y}, local[] = {block, 1};
    const int error = clEnqueueNDRangeKernel(queue, what, 2, nullptr, all, local, 0, nullptr, nullptr);
    return error ? error : clFinish(queue);
  }
  void read(Handle from, std::size_t offset, std::size_t bytes, void* to) const {
    DNL_CL(clEnqueueReadBuffer, Handle, Handle, u32, std::size_t, std::size_t, void*, u32, Handle, Handle);
    must(clEnqueueReadBuffer(queue, from, 1, offset, bytes, to, 0, nullptr, nullptr), "reading");
  }
  void write(Handle to, std::size_t offset, std::size_t bytes, const void* from) const {
    DNL_CL(clEnqueueWriteBuffer, Handle, Handle, u32, std::size_t, std::size_t, const void*, u32, Handle, Handle);
    must(clEnqueueWriteBuffer(queue, to, 1, offset, bytes, from, 0, nullptr, nullptr), "writing");
  }
};
OpenCL& cl() {
  static OpenCL* one = new OpenCL;  // lives as long as the process
  return *one;
}

struct Block {
  Handle buffer;
  std::size_t bytes;
};
std::map<u64, Block> g_blocks;

// The block that holds these bytes.
std::map<u64, Block>::iterator block_at(u64 at, std::size_t bytes) {
  auto b = g_blocks.upper_bound(at);
  if (b == g_blocks.begin()) return g_blocks.end();
  --b;
  return at + bytes <= b->first + b->second.bytes ? b : g_blocks.end();
}
// oclgrind looks at every byte of all buffers after each launch. Of a buffer that is taken in advance there is the
// beginning alone: oclgrind tells of what is used behind it, and copies of that are refused.
constexpr std::size_t kLarge = std::size_t(1) << 16;
bool in_oclgrind() {
  static const bool is = std::getenv("OCLGRIND_UNINITIALIZED") != nullptr;
  return is;
}
void note(const char* name) {
  static const char* file = std::getenv("DYNET_LITE_STANDIN_LAUNCHES");
  static std::set<std::string> seen;
  if (file && seen.insert(name).second) std::ofstream(file, std::ios::app) << name << "\n";
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return kOk; }
int cuDriverGetVersion(int* version) {
  *version = 12090;
  return kOk;
}
int cuDeviceGetCount(int* n) {
  *n = 1;
  return kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return kOk;
}
int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "OpenCL");
  return kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : 0;
  return kOk;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t(1) << 32;
  return kOk;
}
int cuDevicePrimaryCtxRetain(Handle* context, int) {
  *context = &cl();
  return kOk;
}
int cuCtxSetCurrent(Handle) { return kOk; }
int cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t(1) << 32;
  return kOk;
}
int cuMemAlloc_v2(u64* to, std::size_t bytes) {
  int error = 0;
  if (in_oclgrind() && bytes > kLarge) bytes = kLarge;
  Handle made = cl().buffer(bytes, &error);
  if (error) return kOutOfMemory;
  static const Handle place = cl().buffer(sizeof(u64), &error);
  if (std::getenv("DYNET_LITE_STANDIN_FILL")) cl().write(made, 0, bytes, std::string(bytes, '\xff').data());
  cl().argument(cl().address_of, 0, sizeof made, &made);
  cl().argument(cl().address_of, 1, sizeof place, &place);
  must(cl().run(cl().address_of, 1, 1, 1), "address of a buffer");
  cl().read(place, 0, sizeof *to, to);
  g_blocks[*to] = {made, bytes};
  return kOk;
}
int cuMemFree_v2(u64 at) {
  const auto b = g_blocks.find(at);
  if (b == g_blocks.end()) return kInvalid;
  DNL_CL(clReleaseMemObject, Handle);
  // What oclgrind knows of a buffer that is released it takes for true of the next one, which may be longer.
  if (!in_oclgrind()) clReleaseMemObject(b->second.buffer);
  g_blocks.erase(b);
  return kOk;
}
int cuMemHostAlloc(void** to, std::size_t bytes, unsigned) {
  *to = std::malloc(bytes);
  return *to ? kOk : kOutOfMemory;
}
int cuMemFreeHost(void* p) {
  std::free(p);
  return kOk;
}
int cuMemcpyHtoDAsync_v2(u64 to, const void* from, std::size_t bytes, Handle) {
  const auto b = block_at(to, bytes);
  if (b == g_blocks.end()) return kInvalid;
  cl().write(b->second.buffer, to - b->first, bytes, from);
  return kOk;
}
int cuMemcpyDtoHAsync_v2(void* to, u64 from, std::size_t bytes, Handle) {
  const auto b = block_at(from, bytes);
  if (b == g_blocks.end()) return kInvalid;
  cl().read(b->second.buffer, from - b->first, bytes, to);
  return kOk;
}
int cuStreamCreate(Handle* stream, unsigned) {
  *stream = &cl();
  return kOk;
}
int cuStreamSynchronize(Handle) { return kOk; }
int cuEventCreate(Handle* event, unsigned) {
  *event = &cl();
  return kOk;
}
int cuEventRecord(Handle, Handle) { return kOk; }
int cuEventSynchronize(Handle) { return kOk; }
int cuEventElapsedTime(float* milliseconds, Handle, Handle) {
  *milliseconds = 0;
  return kOk;
}
int cuModuleLoadData(Handle* module, const void*) {
  *module = &cl();
  return kOk;
}
int cuModuleGetFunction(Handle* to, Handle, const char* name) {
  for (Kernel& k : g_kernels)
    if (std::strcmp(k.name, name) == 0) {
      *to = &k;
      return kOk;
    }
  return kNotFound;
}
int cuLaunchKernel(Handle what, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned, unsigned,
                   unsigned, Handle, void** arguments, void**) {
  const Kernel& k = *static_cast<const Kernel*>(what);
  if (grid_z != 1 || block_x != k.threads || grid_x == 0 || grid_y == 0) return kInvalid;
  note(k.name);
  cl().argument(k.handle, 0, sizeof(u64), arguments[0]);
  return cl().run(k.handle, grid_x, grid_y, block_x) ? kLaunchFailed : kOk;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "an error of the stand-in";
  return kOk;
}

}  // extern "C"
