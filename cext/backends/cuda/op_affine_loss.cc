// The loss of an affine map (ops/affine_loss.cc). The scores of all examples are one product, and stay for backward:
// here they need not pass through a cache in pieces.
#include "backends/cuda/ops.h"
#include "kernels/gemm.h"

namespace dnl::cuda {
namespace {

constexpr int kX = 0, kW = 1, kBias = 2;             // arguments; there may be no bias
constexpr int kLoss = 0, kLogSums = 1, kScores = 2;  // outputs; of the log-sums' room one number an example is used

struct Examples {
  const Call& c;
  idx classes, size, per, count;
  explicit Examples(const Call& call)
      : c(call),
        classes(c.arg_dim[kW]->rows()),
        size(c.arg_dim[kW]->cols()),
        per(c.arg_dim[kX]->bd),
        count(c.members * per) {}

  // A row for each element of each member.
  Rows elements(const Rows& r, idx n) const {
    if (per == 1 || !r.wanted()) return r;
    float** list = c.scratch->array<float*>(static_cast<std::size_t>(count));
    for (idx i = 0; i < count; ++i) list[i] = r[i / per] + i % per * n;
    return Rows{nullptr, 0, list};
  }
  device::Lines lines() const {
    device::Lines r{};
    r.members = c.members;
    r.lines = per;
    r.n = classes;
    r.inner = 1;
    Vec<i32> labels;
    for (idx i = 0; i < count; ++i) labels.push_back(c.member[i / per][1 + i % per].i);
    r.words = stage(labels);
    return r;
  }
};

void forward(const Call& c) {
  const Examples e(c);
  const Rows bias = c.nargs > kBias ? Rows{c.x[kBias].base, 0, nullptr} : Rows{};
  gemm_rows(false, e.classes, e.count, e.size, c.x[kW].base, e.classes, e.elements(c.x[kX], e.size), bias, false,
            e.elements(c.y[kScores], e.classes));
  device::Lines r = e.lines();
  r.x = read_output(c, kScores);
  r.y = write_output(c, kLoss);
  r.z = write_output(c, kLogSums);
  recorder().add(Kernel::log_sum_exp, r, e.count * 128);
}

// Of x, if that is wanted here, and of W and b, where there is memory for them.
void gradients(const Call& c, bool of_x) {
  const Examples e(c);
  float* const dw = c.dx[kW].base;
  float* const db = c.nargs > kBias ? c.dx[kBias].base : nullptr;
  of_x = of_x && c.dx[kX].wanted();
  if (!of_x && !dw && !db) return;
  const Rows of_members{recorder().temporary(static_cast<std::size_t>(e.count * e.classes)), e.per * e.classes,
                        nullptr};
  device::Lines r = e.lines();
  r.x = read_output(c, kScores);
  r.z = read_output(c, kLogSums);
  r.dy = read_gradient(c, kLoss);
  r.dx = write(of_members, c.members, static_cast<std::size_t>(e.per * e.classes));
  recorder().add(Kernel::log_sum_exp_back, r, e.count * e.classes);
  const Rows d{of_members.base, e.classes, nullptr};
  if (of_x)
    gemm_rows(true, e.size, e.count, e.classes, c.x[kW].base, e.classes, d, Rows{}, c.acc[kX],
              e.elements(c.dx[kX], e.size));
  if (dw) gemm_outer(e.classes, e.size, e.count, d, e.elements(c.x[kX], e.size), dw, e.classes);
  if (db) table().sum_rows(e.count, e.classes, d, db, true);
}

// That of the bias comes with that of the matrix.
void backward_shared(const Call& c, int wrt) {
  if (wrt == kW || !c.dx[kW].wanted()) gradients(c, false);
}

const DeviceOpEntry affine_loss("_affine_loss", {forward, [](const Call& c) { gradients(c, true); }, backward_shared});

}  // namespace
}  // namespace dnl::cuda
