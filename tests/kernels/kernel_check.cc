// Runs every check on the kernels of every instruction set this machine has. `--accuracy` prints the largest errors,
// `--chosen` the instruction set that the library would use.
#include "check.h"

namespace check {
int failures = 0;
long checks = 0;
double largest_product = kInf;
bool print_accuracy = false;
}  // namespace check

// No entry of the table was forgotten: all are pointers, or numbers that are not 0.
void check_is_full(const check::Kernels& k) {
  const void* entry = nullptr;
  for (std::size_t at = 0; at < sizeof k; at += sizeof entry) {
    std::memcpy(&entry, reinterpret_cast<const char*>(&k) + at, sizeof entry);
    check::expect(entry != nullptr,
                  std::string(k.isa) + ": kernel " + std::to_string(at / sizeof entry) + " is missing");
  }
}

int main(int argc, char** argv) {
  using namespace check;
  if (argc > 1 && !std::strcmp(argv[1], "--chosen")) {
    std::printf("%s\n", dnl::kernels().isa);
    return 0;
  }
  print_accuracy = argc > 1 && !std::strcmp(argv[1], "--accuracy");
  formula_gradients();
  for (const char* isa : {"baseline", "avx2", "avx512", "neon"}) {
    const Kernels* k = dnl::kernels_for(isa);
    if (!k) {
      std::printf("%s: not here\n", isa);
      continue;
    }
    const long before = checks;
    check_is_full(*k);
    formulas(*k);
    vectors(*k);
    softmaxes(*k);
    cells(*k);
    random_numbers(*k);
    updates(*k);
    products(*k);
    std::printf("%s: %ld checks\n", isa, checks - before);
  }
  gemm_dispatch();
  std::printf("%ld checks, %d failures\n", checks, failures);
  return failures != 0;
}
