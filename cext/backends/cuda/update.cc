#include "backends/cuda/update.h"

#include <algorithm>

#include "backends/cuda/table.h"

namespace dnl::cuda {
namespace {

device::Rule rule_of(Rule rule) {
  switch (rule) {
    case Rule::Sgd: return device::kSgd;
    case Rule::Momentum: return device::kMomentum;
    case Rule::Adagrad: return device::kAdagrad;
    case Rule::Adadelta: return device::kAdadelta;
    case Rule::RmsProp: return device::kRmsprop;
    case Rule::Adam: return device::kAdam;
    case Rule::Amsgrad: return device::kAmsgrad;
    case Rule::Eg: return device::kEgBegin;
  }
  return device::kSgd;
}

// Rows of the tensor's weights, or of what lies as they do.
class RowsOf {
 public:
  explicit RowsOf(const UpdateTensor& t) : t_(t), highest_(t.rows) {
    if (t.row)
      for (std::size_t k = 0; k < t.rows; ++k) highest_ = std::max<std::size_t>(highest_, t.row[k] + std::size_t(1));
  }
  Rows of(float* base) {
    if (!t_.row) return Rows{base, static_cast<std::ptrdiff_t>(t_.n), nullptr};
    list_.clear();
    for (std::size_t k = 0; k < t_.rows; ++k) list_.push_back(base + t_.row[k] * t_.n);
    return Rows{nullptr, 0, list_.data()};
  }
  std::ptrdiff_t floats() const { return static_cast<std::ptrdiff_t>(highest_ * t_.n); }

 private:
  const UpdateTensor& t_;
  std::size_t highest_;
  Vec<float*> list_;
};

}  // namespace

void update(Recorder& rec, Rule rule, const UpdateSetting& setting, const UpdateTensor& t) {
  const std::ptrdiff_t rows = static_cast<std::ptrdiff_t>(t.rows), n = static_cast<std::ptrdiff_t>(t.n);
  if (rows * n == 0) return;
  const Kernels& k = table();
  RowsOf place(t);
  const Rows packed{nullptr, n, nullptr};
  auto beside = [&](const float* base) { return Rows{const_cast<float*>(base), packed.stride, nullptr}; };
  if (t.from) k.copy_rows(rows, n, beside(t.from), beside(t.w));
  if (t.old) k.copy_rows(rows, n, place.of(t.w), beside(t.old));
  device::Update r{};
  r.w = rec.writes(t.w, place.floats());
  std::ptrdiff_t gradients = rows;
  if (t.slot) {
    gradients = 0;
    for (std::ptrdiff_t m = 0; m < rows; ++m) gradients = std::max<std::ptrdiff_t>(gradients, t.slot[m] + 1);
    r.slot = rec.stage(t.slot, t.rows * sizeof(i32));
  }
  if (t.row) r.row = rec.stage(t.row, t.rows * sizeof(u32));
  r.g = rec.writes(t.g, gradients * n);
  r.s0 = rec.writes(t.s[0], place.floats());
  r.s1 = rec.writes(t.s[1], place.floats());
  r.s2 = rec.writes(t.s[2], place.floats());
  r.rows = rows;
  r.n = n;
  r.rule = rule_of(rule);
  r.gscale = setting.gscale;
  r.factor = rec.reads(setting.factor, 1);
  r.wdecay = setting.wdecay;
  std::copy(setting.c, setting.c + 6, r.c);
  rec.add(Kernel::update, r, rows * n);
  if (rule != Rule::Eg) return;
  // The weights of a tensor, or of each row, are a distribution.
  const Rows weights = place.of(t.w);
  const bool one = !t.row && !t.slot;
  for (std::ptrdiff_t m = 0; m < (one ? 1 : rows); ++m) {
    float* w = weights[m];
    k.softmax(one ? rows * n : n, w, w);
    if (setting.wdecay != 0) k.scale(one ? rows * n : n, 1.0f - setting.wdecay, w);
  }
}

}  // namespace dnl::cuda
