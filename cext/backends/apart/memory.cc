#include "backends/apart/memory.h"

#include <map>
#include <mutex>

#include "base/vec.h"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#define DNL_APART 1
#endif

namespace dnl {

#ifdef DNL_APART
namespace {

constexpr std::size_t kRange = std::size_t(1) << 36;

class Ranges {
 public:
  Ranges() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    shown_ = reserve();
    kept_ = reserve();
    free_[0] = kRange;
  }
  // Page after page, and one more that nobody may touch.
  void* alloc(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(lock_);
    const std::size_t use = (bytes + page_) / page_ * page_, all = use + page_;
    auto at = free_.begin();
    while (at != free_.end() && at->second < all) ++at;
    if (at == free_.end() || mprotect(kept_ + at->first, use, PROT_READ | PROT_WRITE) != 0)
      fail(ErrorKind::Memory, "[apart] no room for " + std::to_string(bytes) + " bytes");
    const std::size_t from = at->first, left = at->second - all;
    free_.erase(at);
    if (left) free_[from + all] = left;
    used_[from] = all;
    std::memset(kept_ + from, 0xff, use);
    return shown_ + from;
  }
  void give_back(void* p) {
    if (!p) return;
    const std::lock_guard<std::mutex> lock(lock_);
    const auto at = used_.find(static_cast<std::size_t>(static_cast<char*>(p) - shown_));
    std::size_t from = at->first, size = at->second;
    used_.erase(at);
    mprotect(kept_ + from, size, PROT_NONE);
    madvise(kept_ + from, size, MADV_DONTNEED);
    auto next = free_.lower_bound(from);
    if (next != free_.end() && from + size == next->first) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == from)
      std::prev(next)->second += size;
    else
      free_[from] = size;
  }
  float* behind(const float* p) const {
    const char* at = reinterpret_cast<const char*>(p);
    if (at < shown_ || at >= shown_ + kRange)
      fail(ErrorKind::Internal, "[apart] an address of the host where one of the backend is needed");
    return reinterpret_cast<float*>(kept_ + (at - shown_));
  }

 private:
  static char* reserve() {
    int how = MAP_PRIVATE | MAP_ANON;
#ifdef MAP_NORESERVE
    how |= MAP_NORESERVE;
#endif
    void* p = mmap(nullptr, kRange, PROT_NONE, how, -1, 0);
    if (p == MAP_FAILED) fail(ErrorKind::Memory, "[apart] no room for addresses");
    return static_cast<char*>(p);
  }

  std::size_t page_;
  char *shown_, *kept_;
  std::mutex lock_;
  std::map<std::size_t, std::size_t> free_, used_;  // where each begins, and how long it is
};

Ranges& ranges() {
  static auto* all = new Ranges;  // outlives the graphs of threads that end late
  return *all;
}

}  // namespace

bool apart_memory_exists() { return true; }
void* apart_alloc(std::size_t bytes) { return ranges().alloc(bytes); }
void apart_free(void* p) { ranges().give_back(p); }
float* behind(const float* p) { return p ? ranges().behind(p) : nullptr; }
#else
bool apart_memory_exists() { return false; }
void* apart_alloc(std::size_t bytes) { return heap_alloc(bytes); }
void apart_free(void* p) { heap_free(p); }
float* behind(const float* p) { return const_cast<float*>(p); }
#endif

}  // namespace dnl
