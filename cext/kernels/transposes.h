// Transposes of shared matrices, which backward passes read: each is made once in a pass, by whoever first wants it,
// and read by all calls of all lanes.
//
// Threads wait for one another only while the transpose that they want is in work. No heap call once passes are alike.
// Calls find them at Call::transposes. Who may include: ops/, backends/. Includes: base/.
#pragma once
#include <atomic>
#include <mutex>
#include <new>

#include "base/arena.h"
#include "base/wait.h"

namespace dnl {

class Transposes {
 public:
  // What is transposed: the matrix, or the first of several, and what tells it from all others that begin there.
  struct Key {
    const float* matrix;
    u64 what;
    bool operator==(const Key& o) const { return matrix == o.matrix && what == o.what; }
  };

  // Before a pass, in one thread: there are none.
  void begin() {
    arena_.rewind();
    table_.store(nullptr, std::memory_order_relaxed);
    count_ = 0;
  }
  void release() {
    begin();
    arena_.release();
  }
  // How many there are by now.
  u64 count() const { return count_; }
  // The n floats that make(float*) has filled, perhaps in another thread.
  template <class Make>
  const float* get(const Key& key, std::size_t n, Make make) {
    bool added = false;
    Entry* e = find(key);
    if (!e) e = add(key, n, &added);
    if (added) {
      make(e->to);
      e->made.store(true, std::memory_order_release);
    }
    for (Wait wait; !e->made.load(std::memory_order_acquire);) wait.turn();
    return e->to;
  }

 private:
  struct Entry {
    Key key;
    float* to;
    std::atomic<bool> made;
  };
  // Open addressing. One that is outgrown stays readable until the pass ends.
  struct Table {
    u64 mask;
    std::atomic<Entry*>* entries;
  };

  static u64 hash(const Key& key) {
    const u64 h = (reinterpret_cast<std::uintptr_t>(key.matrix) ^ key.what * 0xD6E8FEB86659FD93u) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
  }
  static std::atomic<Entry*>& place(const Table& t, const Key& key) {
    u64 at = hash(key) & t.mask;
    for (;; at = (at + 1) & t.mask) {
      const Entry* e = t.entries[at].load(std::memory_order_acquire);
      if (!e || e->key == key) return t.entries[at];
    }
  }
  Entry* find(const Key& key) const {
    const Table* t = table_.load(std::memory_order_acquire);
    return t ? place(*t, key).load(std::memory_order_acquire) : nullptr;
  }
  Entry* add(const Key& key, std::size_t n, bool* added) {
    const std::lock_guard<std::mutex> lock(adding_);
    if (Entry* e = find(key)) return e;
    Table* t = table_.load(std::memory_order_relaxed);
    if (!t || 2 * count_ > t->mask) t = grow(t);
    float* to = arena_.floats(n);
    Entry* e = new (arena_.alloc_bytes(sizeof(Entry))) Entry{key, to, {false}};
    place(*t, key).store(e, std::memory_order_release);
    ++count_;
    *added = true;
    return e;
  }
  Table* grow(const Table* old) {
    constexpr u64 kFewest = 64;
    const u64 size = old ? 2 * (old->mask + 1) : kFewest;
    Table* t = new (arena_.alloc_bytes(sizeof(Table))) Table{size - 1, arena_.array<std::atomic<Entry*>>(size)};
    for (u64 i = 0; i < size; ++i) new (t->entries + i) std::atomic<Entry*>(nullptr);
    for (u64 i = 0; old && i <= old->mask; ++i)
      if (Entry* e = old->entries[i].load(std::memory_order_relaxed))
        place(*t, e->key).store(e, std::memory_order_relaxed);
    table_.store(t, std::memory_order_release);
    return t;
  }

  std::mutex adding_;
  Arena arena_;
  std::atomic<Table*> table_{nullptr};
  u64 count_ = 0;
};

}  // namespace dnl
