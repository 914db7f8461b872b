#include "kernels/repeats.h"

namespace dnl {
namespace {

// A place in a table of 2^bits.
std::size_t place(const float* p, int bits) {
  return static_cast<std::size_t>(
      static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p) >> 4) * 0x9E3779B97F4A7C15u >> (64 - bits));
}

}  // namespace

// Do two of some rows, taken evenly, repeat? Words of a text lie anywhere: of 64 that is all but certain. What follows
// one state (the next things on a stack, the actions until a word is shifted) lies side by side: so neighbours are
// taken.
bool Repeats::likely(const Rows& rows, std::ptrdiff_t n) {
  constexpr std::ptrdiff_t kPairs = 64, kBits = 8;
  const float* seen[1 << kBits] = {};
  for (std::ptrdiff_t i = 0; i < kPairs; ++i) {
    const float* const pair[2] = {rows[i * n / kPairs], rows[i * n / kPairs + 1]};
    for (const float* p : pair) {
      std::size_t at = place(p, kBits);
      for (; seen[at]; at = (at + 1) % (1 << kBits))
        if (seen[at] == p) return true;
      seen[at] = p;
    }
  }
  return false;
}

bool Repeats::find(const Rows& rows, std::ptrdiff_t n) {
  constexpr std::ptrdiff_t kFew = 128;
  if (rows.regular() || n < kFew || !likely(rows, n)) return false;
  int bits = 8;
  while (std::ptrdiff_t(1) << bits < 2 * n) ++bits;
  const std::size_t mask = (std::size_t(1) << bits) - 1;
  table_.assign(mask + 1, 0);  // numbers of distinct rows, counted from 1
  first_.clear();
  several_.clear();
  number_.resize(static_cast<std::size_t>(n));
  const float* before = nullptr;
  for (std::ptrdiff_t r = 0; r < n; ++r) {
    const float* p = rows[r];
    std::uint32_t& number = number_[static_cast<std::size_t>(r)];
    if (p == before) {
      several_[number = number_[static_cast<std::size_t>(r - 1)]] = 1;
      continue;
    }
    before = p;
    std::size_t at = place(p, bits);
    while (table_[at] && rows[first(table_[at] - 1)] != p) at = (at + 1) & mask;
    if (table_[at]) {
      several_[table_[at] - 1] = 1;
    } else {
      first_.push_back(static_cast<std::uint32_t>(r));
      several_.push_back(0);
      table_[at] = static_cast<std::uint32_t>(first_.size());
    }
    number = table_[at] - 1;
  }
  return distinct() <= n - n / 8;
}

}  // namespace dnl
