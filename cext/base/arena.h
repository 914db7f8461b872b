// Arena: memory taken front to back and given back all at once.
//
// alloc() bumps a pointer; when the current block is full another is taken from the heap. reset() keeps the memory
// for the next round, joined into one block, so that a loop with like rounds makes no heap call after the second.
// A block many times larger than what recent rounds used is returned to the heap (RecentUse in vec.h). Memory is
// uninitialised, aligned to 64 bytes. Includes: standard library only.
#pragma once
#include "base/vec.h"

namespace dnl {

// Where an arena takes its blocks from: the host's heap unless a backend says otherwise.
struct MemorySource {
  void* (*alloc)(std::size_t bytes) = heap_alloc;
  void (*free)(void*) = heap_free;
};

class Arena {
 public:
  Arena() = default;
  explicit Arena(MemorySource source) : source_(source) {}
  ~Arena() { release(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* alloc_bytes(std::size_t bytes) {
    bytes = (bytes + 63) & ~std::size_t(63);
    if (bytes > left_) next_block(bytes);
    void* p = cur_;
    cur_ += bytes;
    left_ -= bytes;
    used_ += bytes;
    return p;
  }
  float* floats(std::size_t n) { return static_cast<float*>(alloc_bytes(n * sizeof(float))); }
  template <class T>
  T* array(std::size_t n) {
    return static_cast<T*>(alloc_bytes(n * sizeof(T)));
  }

  // Asks for what has been taken, if that lies in one block.
  void fetch() const {
    if (blocks_.size() == 1) fetch_lines(blocks_[0].p, used_);
  }
  std::size_t used() const { return used_; }
  std::size_t reserved() const { return reserved_; }

  // Ends a round: everything is given back to the arena, and to the heap when it is far above recent use.
  void reset() {
    use_.note(used_);
    if (use_.far_below()) release();
    rewind();
  }
  // Between rounds: room for so many bytes.
  void reserve(std::size_t bytes) {
    if (bytes <= reserved_) return;
    free_blocks();
    next_block(bytes);
  }
  // Everything is given back to the arena within a round.
  void rewind() {
    if (!used_ && !most_ && blocks_.size() < 2) return;
    use_.note(used_);
    if (blocks_.size() > 1 || most_ > reserved_) {
      const std::size_t want = most_ > reserved_ ? most_ : reserved_;
      free_blocks();
      next_block(want);
    }
    if (!blocks_.empty()) {
      cur_ = blocks_[0].p;
      left_ = blocks_[0].n;
    }
    used_ = most_ = 0;
  }
  // How far a round has come. Between rounds take_again() takes at once what had been taken by then, where it lay:
  // false if the memory lies elsewhere now, or lay in several blocks.
  struct Mark {
    const char* block = nullptr;
    std::size_t used = 0;
  };
  Mark mark() const { return blocks_.size() == 1 ? Mark{blocks_[0].p, used_} : Mark{}; }
  bool take_again(const Mark& m) {
    if (blocks_.size() != 1 || blocks_[0].p != m.block || m.used > blocks_[0].n) return false;
    use_.note(used_);
    cur_ = blocks_[0].p + m.used;
    left_ = blocks_[0].n - m.used;
    used_ = m.used;
    return true;
  }
  // The same, to return to within the round: what has been taken since is given back, further blocks to the heap. The
  // next round has room for as much from the start.
  struct Point {
    std::size_t blocks, taken, used;  // taken: bytes of the last block
  };
  Point point() const { return {blocks_.size(), blocks_.empty() ? 0 : blocks_[blocks_.size() - 1].n - left_, used_}; }
  void return_to(const Point& p) {
    if (blocks_.empty() || p.blocks > blocks_.size() || p.used > used_) return;  // another round has begun
    use_.note(used_);
    if (reserved_ > most_) most_ = reserved_;
    while (blocks_.size() > p.blocks && blocks_.size() > 1) {
      source_.free(blocks_.back().p);
      reserved_ -= blocks_.back().n;
      blocks_.pop_back();
    }
    const std::size_t taken = p.blocks ? p.taken : 0;
    cur_ = blocks_.back().p + taken;
    left_ = blocks_.back().n - taken;
    used_ = p.used;
  }
  void release() {
    heap_given_back().fetch_add(reserved_, std::memory_order_relaxed);
    use_.given_back();
    free_blocks();
    most_ = 0;
  }

 private:
  struct Block {
    char* p;
    std::size_t n;
  };
  void free_blocks() {
    for (Block& b : blocks_) source_.free(b.p);
    blocks_.clear();
    cur_ = nullptr;
    left_ = used_ = reserved_ = 0;
  }
  void next_block(std::size_t bytes) {
    std::size_t n = reserved_ / 2 > bytes ? reserved_ / 2 : bytes;
    if (n < kMinBlock) n = kMinBlock;
    char* p = static_cast<char*>(source_.alloc(n));
    blocks_.push_back({p, n});
    cur_ = p;
    left_ = n;
    reserved_ += n;
  }
  static constexpr std::size_t kMinBlock = std::size_t(1) << 16;
  MemorySource source_;
  Vec<Block> blocks_;
  char* cur_ = nullptr;
  std::size_t left_ = 0, used_ = 0, reserved_ = 0;
  std::size_t most_ = 0;                 // that was reserved before return_to() in this round
  RecentUse use_{std::size_t(1) << 24};  // bytes
};

}  // namespace dnl
