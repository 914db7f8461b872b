#include "graph/params.h"

#include <cmath>

namespace dnl {

void LookupTable::settle_owing(u32 i) {
  const GradientLock lock(in_use);
  if (!owes(i)) return;
  if (!before.empty()) before.keep_owing(i, row(i), row_size);
  pay(i);
}

void LookupTable::pay(u32 i) {
  const float f = static_cast<float>(std::exp(decay_now - decay_of_row[i]));
  float* r = row(i);
  for (std::size_t j = 0; j < row_size; ++j) r[j] *= f;
  decay_of_row[i] = decay_now;
}

void LookupTable::keep_numbers() {
  const Needed needed = LiveRuns::of(this_thread());
  if (!needed.any || !read_in_place) return;
  const GradientLock lock(in_use);
  if (float* to = before.keep_all(this_thread(), needed, next_moment(), size()))
    std::memcpy(to, value.data(), size() * sizeof(float));
}

void LookupTable::keep_row(u32 i) {
  const Needed needed = LiveRuns::of(this_thread());
  if (!needed.any || !read_in_place) return;
  const GradientLock lock(in_use);
  if (float* to = before.keep_rows(this_thread(), needed, next_moment(), &i, 1, row_size))
    std::memcpy(to, row(i), row_size * sizeof(float));
}

}  // namespace dnl
