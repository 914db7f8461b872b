// The CPU backend: runs the kernels of the op entries.
#include <algorithm>

#include "kernels/kernels.h"
#include "op/backend.h"

namespace dnl {
namespace {

class Cpu final : public Backend {
 public:
  const char* name() const override { return "cpu"; }
  void forward(const Call& c) override { c.op->forward(c); }
  void backward(const Call& c) override { c.op->backward(c); }
  void backward_shared(const Call& c, int wrt) override { c.op->backward_shared(c, wrt); }
  void fill(std::size_t n, float v, float* y) override { kernels().fill(n, v, y); }
  void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) override { kernels().copy_rows(k, n, from, to); }
  void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) override { kernels().add_rows(k, n, from, to); }
  bool all_finite(std::size_t n, const float* x) override { return kernels().all_finite(n, x); }
  std::size_t count_nonzero(std::size_t n, const float* x) override {
    return n - static_cast<std::size_t>(std::count(x, x + n, 0.f));
  }
  void download(std::size_t n, const float* from, float* to) override { std::memcpy(to, from, n * sizeof(float)); }
};

Cpu cpu;
const RegisterBackend registered("cpu", &cpu);

}  // namespace
}  // namespace dnl
