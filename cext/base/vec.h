// Vec<T>: a growable array of plain data whose heap calls are counted.
//
// All storage of the engine that lives across training steps is a Vec or an Arena, so that "no heap call in a
// steady-state step" is a number a test can read (heap_calls()). clear() keeps the memory. Elements are never
// constructed or destroyed: T must be trivially copyable. Includes: standard library only.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/check.h"

namespace dnl {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Process-wide count of heap calls made by the engine's containers and arenas.
inline std::atomic<u64>& heap_call_counter() {
  static std::atomic<u64> n{0};
  return n;
}

// 64-byte aligned memory; throws Error(Memory). Uninitialised. Large blocks ask for huge pages: slabs and tables are
// walked row by row, and with pages of 4 KiB the processor spends its time on finding them.
inline void* heap_alloc(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t(1) << 21;
  heap_call_counter().fetch_add(1, std::memory_order_relaxed);
  const std::size_t unit = bytes >= 2 * kHugePage ? kHugePage : 64;
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* p = rounded < bytes ? nullptr : std::aligned_alloc(unit, rounded ? rounded : unit);
  if (!p) fail(ErrorKind::Memory, "out of memory: wanted " + std::to_string(bytes) + " bytes");
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (unit == kHugePage) madvise(p, rounded, MADV_HUGEPAGE);  // a hint: a kernel without them says no
#endif
  return p;
}
inline void heap_free(void* p) {
  if (p) heap_call_counter().fetch_add(1, std::memory_order_relaxed);
  std::free(p);
}

template <class T>
class Vec {
  static_assert(std::is_trivially_copyable<T>::value, "Vec holds plain data");

 public:
  Vec() = default;
  ~Vec() { heap_free(data_); }
  Vec(const Vec&) = delete;
  Vec& operator=(const Vec&) = delete;
  Vec(Vec&& o) noexcept : data_(o.data_), size_(o.size_), cap_(o.cap_) { o.data_ = nullptr; o.size_ = o.cap_ = 0; }
  Vec& operator=(Vec&& o) noexcept {
    std::swap(data_, o.data_); std::swap(size_, o.size_); std::swap(cap_, o.cap_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t capacity_bytes() const { return cap_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  void clear() { size_ = 0; }
  void pop_back() { --size_; }
  void push_back(const T& v) {
    if (size_ == cap_) { const T copy = v; grow(size_ + 1); data_[size_++] = copy; return; }
    data_[size_++] = v;
  }
  // Room for n more elements; returns where they go. The caller writes them.
  T* extend(std::size_t n) {
    if (size_ + n > cap_) grow(size_ + n);
    T* p = data_ + size_;
    size_ += n;
    return p;
  }
  // New elements are uninitialised.
  void resize(std::size_t n) { if (n > cap_) grow(n); size_ = n; }
  void assign(std::size_t n, const T& v) { resize(n); for (std::size_t i = 0; i < n; ++i) data_[i] = v; }
  void release() { heap_free(data_); data_ = nullptr; size_ = cap_ = 0; }

 private:
  void grow(std::size_t need) {
    std::size_t cap = cap_ ? cap_ * 2 : 16;
    if (cap < need) cap = need;
    T* fresh = static_cast<T*>(heap_alloc(cap * sizeof(T)));
    if (size_) std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    heap_free(data_);
    data_ = fresh;
    cap_ = cap;
  }
  T* data_ = nullptr;
  std::size_t size_ = 0, cap_ = 0;
};

}  // namespace dnl
