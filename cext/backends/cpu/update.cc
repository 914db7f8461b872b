// Kernels are called on pieces that stay in the nearest cache between a copy and the rule.
#include "backends/cpu/update.h"

#include <algorithm>
#include <cmath>

#include "base/fetch.h"
#include "kernels/kernels.h"

namespace dnl {
namespace {

using Kernel = void (*)(const UpdateArgs&);

Kernel kernel_of(Rule rule) {
  const Kernels& k = kernels();
  switch (rule) {
    case Rule::Sgd: return k.sgd;
    case Rule::Momentum: return k.momentum;
    case Rule::Adagrad: return k.adagrad;
    case Rule::Adadelta: return k.adadelta;
    case Rule::RmsProp: return k.rmsprop;
    case Rule::Adam: return k.adam;
    case Rule::Amsgrad: return k.amsgrad;
    case Rule::Eg: return k.eg;
  }
  return nullptr;
}

class Update {
 public:
  Update(const UpdateRule& rule, const UpdateSetting& s) : rule_(rule), kernel_(kernel_of(rule.id)) {
    std::memcpy(args_.c, s.c, sizeof s.c);
    args_.gscale = s.factor ? s.gscale * *s.factor : s.gscale;
    nothing_ = std::isnan(args_.gscale);
    args_.wdecay = s.wdecay;
  }
  void of(const UpdateTensor& t) {
    t_ = t;
    if (t.row)
      some_rows();
    else if (t.slot)
      all_rows();
    else
      numbers();
  }

 private:
  void numbers() {
    if (t_.outer) return matrix();
    const std::size_t unit = rule_.whole ? t_.n : kUpdateUnit;
    for (std::size_t at = 0; at < t_.n; at += unit) {
      const std::size_t n = std::min(unit, t_.n - at);
      if (t_.from) std::memcpy(t_.w + at, t_.from + at, n * sizeof(float));
      if (t_.old) std::memcpy(t_.old + at, t_.w + at, n * sizeof(float));
      run(at, n, t_.g + at);
    }
  }
  void some_rows() {
    constexpr std::size_t kAhead = 2;
    for (std::size_t k = 0; k < t_.rows; ++k) {
      if (k + kAhead < t_.rows) fetch(t_.row[k + kAhead] * t_.n);
      const std::size_t at = t_.row[k] * t_.n;
      if (t_.old) std::memcpy(t_.old + k * t_.n, t_.w + at, t_.n * sizeof(float));
      run(at, t_.n, t_.g + k * t_.n);
    }
  }
  void all_rows() {
    alignas(64) float zeros[kUpdateUnit];  // they are again after each use: rules set gradients to zero
    std::memset(zeros, 0, sizeof zeros);
    const std::size_t unit = rows_of_unit(rule_, t_.n);
    for (std::size_t from = 0; from < t_.rows; from += unit) {
      const std::size_t to = std::min(t_.rows, from + unit);
      if (t_.old) std::memcpy(t_.old + from * t_.n, t_.w + from * t_.n, (to - from) * t_.n * sizeof(float));
      if (unit > 1)
        narrow_rows(from, to, zeros);
      else if (t_.slot[from] >= 0)
        run(from * t_.n, t_.n, gradient(from));
      else
        row_without_gradient(from, zeros);
    }
  }
  // Some columns at a time.
  void matrix() {
    if (nothing_) return;
    const OuterLater& g = *t_.outer;
    const std::size_t rows = g.y.size(), some = std::max<std::size_t>(1, kUpdateUnit / rows);
    args_.y = g.y.data();
    args_.rows = static_cast<idx>(rows);
    for (std::size_t column = 0; column < g.x.size(); column += some) {
      const std::size_t at = column * rows, n = std::min(some, g.x.size() - column) * rows;
      if (t_.from) std::memcpy(t_.w + at, t_.from + at, n * sizeof(float));
      if (t_.old) std::memcpy(t_.old + at, t_.w + at, n * sizeof(float));
      args_.x = g.x.data() + column;
      run(at, n, nullptr);
    }
    args_.y = nullptr;
  }
  void run(std::size_t at, std::size_t n, float* g) {
    if (nothing_) return kernels().fill(static_cast<idx>(n), 0.f, g);
    args_.n = static_cast<idx>(n);
    args_.w = t_.w + at;
    args_.g = g;
    args_.s0 = t_.s[0] ? t_.s[0] + at : nullptr;
    args_.s1 = t_.s[1] ? t_.s[1] + at : nullptr;
    args_.s2 = t_.s[2] ? t_.s[2] + at : nullptr;
    kernel_(args_);
  }
  float* gradient(std::size_t row) const { return t_.g + static_cast<std::size_t>(t_.slot[row]) * t_.n; }
  // One call of the rule, with the gradients side by side.
  void narrow_rows(std::size_t from, std::size_t to, float* g) {
    for (std::size_t r = from; r < to; ++r)
      if (t_.slot[r] >= 0) std::memcpy(g + (r - from) * t_.n, gradient(r), t_.n * sizeof(float));
    run(from * t_.n, (to - from) * t_.n, g);
  }
  void row_without_gradient(std::size_t row, float* zeros) {
    if (rule_.whole && t_.n > kUpdateUnit) {
      more_.assign(t_.n, 0.f);
      return run(row * t_.n, t_.n, more_.data());
    }
    for (std::size_t at = 0; at < t_.n; at += kUpdateUnit)
      run(row * t_.n + at, std::min(kUpdateUnit, t_.n - at), zeros);
  }
  // Asks for a row and its state, which lie anywhere in tables of many megabytes.
  void fetch(std::size_t at) const {
    for (std::size_t i = 0; i < t_.n; i += 16) {
      DNL_FETCH_TO_WRITE(t_.w + at + i);
      for (int s = 0; s < rule_.states; ++s) DNL_FETCH_TO_WRITE(t_.s[s] + at + i);
    }
  }

  UpdateTensor t_;  // in work
  const UpdateRule& rule_;
  Kernel kernel_;
  UpdateArgs args_{};
  bool nothing_;     // but gradients are cleared
  Vec<float> more_;  // zeros for a rule that looks at whole rows, and these are large
};

}  // namespace

void update_on_cpu(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all) {
  Update update(rule, setting);
  for (std::size_t i = 0; i < k; ++i) update.of(all[i]);
}

}  // namespace dnl
