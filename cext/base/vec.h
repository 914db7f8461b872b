// Vec<T>: a growable array of plain data whose heap calls are counted.
//
// All storage of the engine that lives across training steps is a Vec or an Arena, so that "no heap call in a
// steady-state step" is a number a test can read (heap_calls()). clear() keeps the memory; RecentUse tells their owner
// when to release() it. Elements are never constructed or destroyed: T must be trivially copyable. Includes: standard
// library only.
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
#if defined(__GLIBC__) || defined(_WIN32)
#include <malloc.h>
#endif

#include "base/check.h"
#include "base/fetch.h"

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
#if defined(_WIN32)
  void* p = rounded < bytes ? nullptr : _aligned_malloc(rounded ? rounded : unit, unit);
#else
  void* p = rounded < bytes ? nullptr : std::aligned_alloc(unit, rounded ? rounded : unit);
#endif
  if (!p) fail(ErrorKind::Memory, "out of memory: wanted " + std::to_string(bytes) + " bytes");
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (unit == kHugePage) madvise(p, rounded, MADV_HUGEPAGE);  // a hint: a kernel without them says no
#endif
  return p;
}
inline void heap_free(void* p) {
  if (p) heap_call_counter().fetch_add(1, std::memory_order_relaxed);
#if defined(_WIN32)
  _aligned_free(p);
#else
  std::free(p);
#endif
}

// How much of something rounds (training steps, as a rule) use whose memory is kept from round to round, and when to
// give that back: when it is more than four times what recent rounds used. "Recent" is a peak that sinks by a sixteenth
// a round, so memory returns after some twenty small rounds, and never while rounds have like sizes.
class RecentUse {
 public:
  explicit RecentUse(std::size_t little) : little_(little) {}
  // Within a round.
  void note(std::size_t used) {
    if (used > recent_) recent_ = used;
    if (used > largest_) largest_ = used;
  }
  // Ends a round. Is what was kept for the largest one far above recent use, and more than a little?
  bool far_below() {
    const bool far = largest_ > little_ && largest_ / 4 > recent_;
    recent_ -= recent_ / 16;
    return far;
  }
  void given_back() { largest_ = 0; }

 private:
  std::size_t little_, recent_ = 0, largest_ = 0;
};

// Bytes that containers gave back, but for those that they left when they grew; a count of the process.
inline std::atomic<u64>& heap_given_back() {
  static std::atomic<u64> n{0};
  return n;
}
// Called at every renewal of a graph. malloc keeps for itself what is freed: when much was and nothing more has been
// for a while, the system gets it. Programs that free and take all the time are left alone. `at_once`: it will not be
// taken again.
inline void trim_heap(bool at_once = false) {
#if defined(__GLIBC__)
  constexpr u64 kMuch = u64(1) << 24;  // bytes
  constexpr u32 kWhile = 16;           // calls
  static std::atomic<u64> trimmed{0}, seen{0};
  static std::atomic<u32> quiet{0};
  const u64 now = heap_given_back().load(std::memory_order_relaxed);
  if (now - trimmed.load(std::memory_order_relaxed) < kMuch) return;
  if (seen.exchange(now, std::memory_order_relaxed) != now && !at_once) {
    quiet = 0;
  } else if (at_once || ++quiet == kWhile) {
    trimmed = now;
    malloc_trim(0);
  }
#endif
}

// Asks for all lines of some memory that is read soon.
inline void fetch_lines(const void* p, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < bytes; at += kLine) DNL_FETCH(static_cast<const char*>(p) + at);
}

template <class T>
class Vec {
  static_assert(std::is_trivially_copyable<T>::value, "Vec holds plain data");

 public:
  Vec() = default;
  ~Vec() { release(); }
  Vec(const Vec&) = delete;
  Vec& operator=(const Vec&) = delete;
  Vec(Vec&& o) noexcept : data_(o.data_), size_(o.size_), cap_(o.cap_) {
    o.data_ = nullptr;
    o.size_ = o.cap_ = 0;
  }
  Vec& operator=(Vec&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    std::swap(cap_, o.cap_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  void fetch() const { fetch_lines(data_, size_ * sizeof(T)); }
  std::size_t capacity_bytes() const { return cap_ * sizeof(T); }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) {
    check(i);
    return data_[i];
  }
  const T& operator[](std::size_t i) const {
    check(i);
    return data_[i];
  }
  T& back() {
    check(size_ - 1);
    return data_[size_ - 1];
  }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  void clear() { size_ = 0; }
  void pop_back() {
    check(size_ - 1);
    --size_;
  }
  void push_back(const T& v) {
    if (size_ == cap_) {
      const T copy = v;
      grow(size_ + 1);
      data_[size_++] = copy;
      return;
    }
    data_[size_++] = v;
  }
  // Room for n more elements; returns where they go. The caller writes them.
  T* extend(std::size_t n) {
    if (size_ + n > cap_) grow(size_ + n);
    T* p = data_ + size_;
    size_ += n;
    return p;
  }
  // The next n elements are added without a heap call.
  void make_room(std::size_t n) {
    extend(n);
    size_ -= n;
  }
  // n elements that lie elsewhere.
  void append(const T* from, std::size_t n) {
    if (n) std::memcpy(static_cast<void*>(extend(n)), from, n * sizeof(T));
  }
  void append(const Vec& from) { append(from.data_, from.size_); }
  // These alone.
  void copy(const T* from, std::size_t n) {
    clear();
    append(from, n);
  }
  void copy(const Vec& from) { copy(from.data_, from.size_); }
  std::size_t capacity() const { return cap_; }
  void reserve(std::size_t n) {
    if (n > cap_) move_to(n);
  }
  // New elements are uninitialised.
  void resize(std::size_t n) {
    if (n > cap_) grow(n);
    size_ = n;
  }
  void assign(std::size_t n, const T& v) {
    resize(n);
    for (std::size_t i = 0; i < n; ++i) data_[i] = v;
  }
  // Those for which f holds, in their order; f is asked once of each.
  template <class F>
  void keep_if(F f) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < size_; ++i)
      if (f(data_[i])) data_[left++] = data_[i];
    size_ = left;
  }
  void release() {
    if (!data_) return;
    heap_given_back().fetch_add(capacity_bytes(), std::memory_order_relaxed);
    heap_free(data_);
    data_ = nullptr;
    size_ = cap_ = 0;
  }

 private:
  // In debug and sanitized builds. What lies between the end and the capacity is memory like other to the sanitizers.
  void check([[maybe_unused]] std::size_t i) const {
#if defined(DNL_CHECKED)
    if (i >= size_) std::abort();
#endif
  }
  void grow(std::size_t need) {
    const std::size_t cap = cap_ ? cap_ * 2 : 16;
    move_to(cap < need ? need : cap);
  }
  void move_to(std::size_t cap) {
    T* fresh = static_cast<T*>(heap_alloc(cap * sizeof(T)));
    if (size_) std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    heap_free(data_);
    data_ = fresh;
    cap_ = cap;
  }
  T* data_ = nullptr;
  std::size_t size_ = 0, cap_ = 0;
};

// Their memory goes back to the heap: Vecs, Arenas, what is made of these.
template <class... T>
void release_all(T&... owners) {
  (owners.release(), ...);
}
// What they hold is read soon, after others have been at work: all of it is asked for at once.
template <class... T>
void fetch_all(const T&... owners) {
  (owners.fetch(), ...);
}

}  // namespace dnl
