// Gumbel distributed numbers; the other distributions are functions of the kernel table.
#include "backends/cuda/ops.h"

namespace dnl::cuda {
namespace {

// Member words: mu, beta, seed.
void gumbel_forward(const Call& c) {
  const idx n = static_cast<idx>(c.out_size());
  for (int m = 0; m < c.members; ++m) {
    const Word* w = c.member[m];
    const u64 seed = w[2].u | static_cast<u64>(w[3].u) << 32;
    device::RandomNumbers r{recorder().writes(c.y[0][m], n), seed, n, device::kGumbel, w[0].f, w[1].f};
    recorder().add(Kernel::random_numbers, r, n);
  }
}
const DeviceOpEntry gumbel("random_gumbel", {gumbel_forward});

}  // namespace
}  // namespace dnl::cuda
