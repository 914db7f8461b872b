#include "graph/params.h"

#include <cmath>

namespace dnl {

void LookupTable::settle(u32 i) {
  if (decay_of_row.empty() || decay_of_row[i] == decay_now) return;
  const float f = static_cast<float>(std::exp(decay_now - decay_of_row[i]));
  float* r = row(i);
  for (std::size_t j = 0; j < row_size; ++j) r[j] *= f;
  decay_of_row[i] = decay_now;
}

}  // namespace dnl
