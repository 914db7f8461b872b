// The list in which a rank says what it has laid down for the ranks beside it: cext/bindings/board.pxi. Who may
// include: bindings/.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace dnl {

// Lies in memory that several processes read and one writes; zeros are a list with nothing in it. Whoever sees a number
// of `laid`, `taken` or `said` sees all that was written before it was published.
class SharedList {
 public:
  static constexpr std::size_t kHead = 9;  // numbers of a head
  static constexpr std::size_t kKept = 4;  // heads: a rank begins a conversation before the others have read the last,
                                           // and once more when it fails
  static constexpr std::size_t kSlots = 1 << 14;  // so many things may lie there at once, in both files together

  struct Slot {
    std::int64_t half, at, size;  // which of the two files, and the bytes of it
  };

  static SharedList* at(void* memory) { return std::launder(static_cast<SharedList*>(memory)); }

  std::int64_t sign() const {
    return sign_;
  }  // a number of its own: whoever opens a list knows that it is the right one
  void set_sign(std::int64_t sign) { sign_ = sign; }

  std::int64_t laid() const { return laid_.load(std::memory_order_acquire); }  // the number of what was laid down last
  std::int64_t taken() const {
    return taken_.load(std::memory_order_acquire);
  }  // the owner needs nothing up to this number
  std::int64_t said() const { return said_.load(std::memory_order_acquire); }  // the number of its last conversation

  const Slot& slot(std::int64_t number) const { return slots_[static_cast<std::size_t>(number) % kSlots]; }
  void lay(std::int64_t number, const Slot& slot) {
    slots_[static_cast<std::size_t>(number) % kSlots] = slot;
    laid_.store(number, std::memory_order_release);
  }
  void take(std::int64_t number) { taken_.store(number, std::memory_order_release); }

  const double* head(std::int64_t serial) const { return heads_[static_cast<std::size_t>(serial) % kKept]; }
  void say(std::int64_t serial, const double* head) {
    std::memcpy(heads_[static_cast<std::size_t>(serial) % kKept], head, sizeof(heads_[0]));
    said_.store(serial, std::memory_order_release);
  }

 private:
  std::int64_t sign_;
  std::atomic<std::int64_t> laid_, taken_, said_;
  double heads_[kKept][kHead];
  Slot slots_[kSlots];
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "other processes see it");

}  // namespace dnl
