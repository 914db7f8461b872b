// The kernel checks of tests/kernels on the GPU's table: each call is launched and waited for at once. On the
// stand-in, whose kernels can read the host's memory as well.
#include "../kernels/check.h"
#include "backends/cuda/table.h"

namespace check {
int failures = 0;
long checks = 0;
double largest_product = 3e6;  // larger ones are there for the caches of processors
bool print_accuracy = false;
}  // namespace check

int main() {
  using namespace check;
  setvbuf(stdout, nullptr, _IONBF, 0);
  dnl::cuda::Device device(0, "");
  dnl::cuda::Recorder recorder(device);
  recorder.eager = true;
  dnl::cuda::use(&recorder);
  const Kernels& k = dnl::cuda::table();
  formulas(k);
  std::printf("formulas: %d\n", failures);
  vectors(k);
  std::printf("vectors: %d\n", failures);
  softmaxes(k);
  std::printf("softmaxes: %d\n", failures);
  cells(k);
  std::printf("cells: %d\n", failures);
  random_numbers(k);
  std::printf("random: %d\n", failures);
  updates(k);
  std::printf("updates: %d\n", failures);
  products(k);
  std::printf("%ld checks, %d failures, %llu launches\n", checks, failures,
              static_cast<unsigned long long>(device.counters.launches));
  return failures != 0;
}
