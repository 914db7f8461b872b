// Which rows of a list are one and the same memory.
//
// Frequent words occur many times in a mini-batch, and their vectors are read where they lie in their table: products
// multiply such rows once (gemm.cc). Who may include: kernels/. Includes: base/.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/rows.h"
#include "base/vec.h"

namespace dnl {

class Repeats {
 public:
  // Looks at the addresses of n rows. False: too few of them repeat to be worth it; then the rest means nothing.
  bool find(const Rows& rows, std::ptrdiff_t n);

  std::ptrdiff_t rows() const { return static_cast<std::ptrdiff_t>(number_.size()); }
  std::ptrdiff_t distinct() const { return static_cast<std::ptrdiff_t>(first_.size()); }
  // The distinct rows are numbered in the order in which they first occur.
  std::ptrdiff_t number(std::ptrdiff_t row) const { return number_[static_cast<std::size_t>(row)]; }
  std::ptrdiff_t first(std::ptrdiff_t number) const { return first_[static_cast<std::size_t>(number)]; }
  bool is_first(std::ptrdiff_t row) const { return first(number(row)) == row; }
  bool repeats(std::ptrdiff_t number) const { return several_[static_cast<std::size_t>(number)] != 0; }

 private:
  static bool likely(const Rows& rows, std::ptrdiff_t n);
  Vec<std::uint32_t> table_, number_, first_;
  Vec<std::uint8_t> several_;
};

}  // namespace dnl
