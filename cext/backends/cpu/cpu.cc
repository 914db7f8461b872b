// The CPU backend: runs the kernels of the op entries.
#include <algorithm>

#include "backends/cpu/intra_op.h"
#include "backends/cpu/update.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "kernels/transposes.h"
#include "op/backend.h"

namespace dnl {
namespace {

class KeptTransposes final : public PassCache {
 public:
  KeptTransposes() { transposes = &all_; }
  void begin() override { all_.begin(); }
  void release() override { all_.release(); }
  u64 count() const override { return all_.count(); }

 private:
  Transposes all_;
};

class Cpu final : public Backend {
 public:
  Cpu() : Backend(true) {}
  const char* name() const override { return "cpu"; }
  std::unique_ptr<PassCache> pass_cache() override { return std::make_unique<KeptTransposes>(); }
  std::unique_ptr<IntraOp> intra_op() override { return intra_op_of_cpu(); }
  void forward(const Call& c) override { c.op->forward(c); }
  void backward(const Call& c) override { c.op->backward(c); }
  void backward_shared(const Call& c, int wrt) override { c.op->backward_shared(c, wrt); }
  void fill_rows(std::size_t k, std::size_t n, float v, Rows to) override {
    if (to.packed(static_cast<std::ptrdiff_t>(n))) return kernels().fill(static_cast<idx>(k * n), v, to.base);
    for (std::size_t m = 0; m < k; ++m) kernels().fill(static_cast<idx>(n), v, to[static_cast<std::ptrdiff_t>(m)]);
  }
  void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) override { kernels().copy_rows(k, n, from, to); }
  void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) override { kernels().add_rows(k, n, from, to); }
  ProductCounts product_counts() const override { return dnl::product_counts(); }
  std::size_t first_not_finite(std::size_t k, const Numbers* arrays) override {
    std::size_t i = 0;
    while (i < k && kernels().all_finite(static_cast<idx>(arrays[i].n), arrays[i].at)) ++i;
    return i;
  }
  void scale_rows(std::size_t k, std::size_t n, const float* factor, Rows rows) override {
    for (std::size_t m = 0; m < k; ++m)
      kernels().scale(static_cast<idx>(n), factor[m], rows[static_cast<std::ptrdiff_t>(m)]);
  }
  void swap_rows(std::size_t k, std::size_t n, Rows a, Rows b) override {
    for (std::size_t m = 0; m < k; ++m) {
      float* row = a[static_cast<std::ptrdiff_t>(m)];
      std::swap_ranges(row, row + n, b[static_cast<std::ptrdiff_t>(m)]);
    }
  }
  double sum_squares(std::size_t k, const Numbers* arrays) override {
    double sum = 0;
    for (std::size_t i = 0; i < k; ++i) sum += kernels().sum_squares(static_cast<idx>(arrays[i].n), arrays[i].at);
    return sum;
  }
  void update(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all) override {
    update_on_cpu(rule, setting, k, all);
  }
  void download(std::size_t n, const float* from, float* to) override { std::memcpy(to, from, n * sizeof(float)); }
  void upload(std::size_t n, const float* from, float* to) override { std::memcpy(to, from, n * sizeof(float)); }
};

Cpu cpu;
const RegisterBackend registered("cpu", &cpu);

}  // namespace
}  // namespace dnl
