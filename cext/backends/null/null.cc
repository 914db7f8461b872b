// The null backend runs nothing: graph building, planning and bookkeeping are tested and timed alone.
//
// Its memory is addresses without anything behind them where the system can give such: who follows one is found out at
// once.
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>

#include <map>
#include <mutex>
#define DNL_NO_ACCESS 1
#endif

#include "op/backend.h"

namespace dnl {
namespace {

#ifdef DNL_NO_ACCESS
std::mutex g_lock;
std::map<void*, std::size_t>& sizes() {
  static auto* all = new std::map<void*, std::size_t>;  // outlives the graphs of threads that end late
  return *all;
}

void* no_access(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (p == MAP_FAILED) fail(ErrorKind::Memory, "[null] no room for " + std::to_string(bytes) + " bytes of addresses");
  const std::lock_guard<std::mutex> lock(g_lock);
  sizes()[p] = bytes;
  return p;
}

void give_back(void* p) {
  const std::lock_guard<std::mutex> lock(g_lock);
  const auto at = sizes().find(p);
  munmap(p, at->second);
  sizes().erase(at);
}

MemorySource no_memory() { return {no_access, give_back}; }
#else
MemorySource no_memory() { return {}; }
#endif

class Null final : public Backend {
 public:
  Null() : Backend(false) {}
  const char* name() const override { return "null"; }
  bool computes() const override { return false; }
  MemorySource memory() const override { return no_memory(); }
  void forward(const Call&) override {}
  void backward(const Call&) override {}
  void backward_shared(const Call&, int) override {}
  void fill_rows(std::size_t, std::size_t, float, Rows) override {}
  void copy_rows(std::size_t, std::size_t, Rows, Rows) override {}
  void add_rows(std::size_t, std::size_t, Rows, Rows) override {}
  void scale_rows(std::size_t, std::size_t, const float*, Rows) override {}
  void swap_rows(std::size_t, std::size_t, Rows, Rows) override {}
  double sum_squares(std::size_t, const Numbers*) override { return 0; }
  void update(const UpdateRule&, const UpdateSetting&, std::size_t, const UpdateTensor*) override {}
  void upload(std::size_t, const float*, float*) override {}
  std::size_t first_not_finite(std::size_t k, const Numbers*) override { return k; }
  void download(std::size_t n, const float*, float* to) override { std::memset(to, 0, n * sizeof(float)); }
};

Null null;
const RegisterBackend registered("null", &null);

}  // namespace
}  // namespace dnl
