// Rows: how a kernel sees one operand of a batched call, one row (a block of floats) per member.
//
// Either a base with a constant distance between rows (`stride`, in floats; 0 means one row shared by all members),
// or a list of row addresses. Rows of one operand have one length, which the operand's dims give.
// Includes: standard library only.
#pragma once
#include <cstddef>

namespace dnl {

struct Rows {
  float* base = nullptr;
  std::ptrdiff_t stride = 0;
  float* const* ptr = nullptr;  // when set, base and stride mean nothing

  float* operator[](std::ptrdiff_t m) const { return ptr ? ptr[m] : base + m * stride; }
  // Those at k addresses, one at least: regular where they lie at one distance, else this list of them.
  static Rows of(float* const* address, std::size_t k) {
    if (k == 1) return Rows{address[0], 0, nullptr};
    const std::ptrdiff_t stride = address[1] - address[0];
    for (std::size_t m = 2; m < k; ++m)
      if (address[m] - address[m - 1] != stride) return Rows{nullptr, 0, address};
    return Rows{address[0], stride, nullptr};
  }
  bool regular() const { return ptr == nullptr; }
  bool wanted() const { return ptr || base; }
  // The rows from row `first` on.
  Rows from(std::ptrdiff_t first) const {
    if (ptr) return Rows{nullptr, 0, ptr + first};
    return base ? Rows{base + first * stride, stride, nullptr} : Rows{};
  }
  // Rows lie one behind the other without gaps: all of them are one array of members * length floats.
  bool packed(std::ptrdiff_t length) const { return ptr == nullptr && stride == length; }
};

// What is worked with soon after a sum of outer products: k rows on both sides, and a block of C of the same size
// elsewhere (null: there is none).
struct NextOuter {
  Rows a, b;
  std::ptrdiff_t k = 0;
  float* c = nullptr;
};

}  // namespace dnl
