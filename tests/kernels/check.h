// Helpers of the kernel checks: a failing check prints where and counts; main() of kernel_check.cc reports.
//
// The checks are a stand-alone C++ program, because kernels are below anything that Python can call; test_kernels.py
// compiles and runs it. Includes: standard library, kernels/.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace check {

using dnl::idx;
using dnl::Kernels;
using dnl::NextOuter;
using dnl::Rows;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

extern int failures;
extern long checks;
extern double largest_product;  // in multiplications; check_gemm.cc leaves larger ones out

inline void expect(bool ok, const std::string& what) {
  ++checks;
  if (ok) return;
  if (++failures <= 40) std::printf("FAILED: %s\n", what.c_str());
}

// Equal within `relative` of the larger or `absolute`; NaN equals NaN, infinities must match.
inline bool near(double got, double want, double relative, double absolute) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want || std::fabs(got - want) <= absolute;
  return std::fabs(got - want) <= std::fmax(absolute, relative * std::fmax(std::fabs(got), std::fabs(want)));
}
inline void expect_near(double got, double want, double relative, double absolute, const std::string& what) {
  if (near(got, want, relative, absolute)) {
    ++checks;
    return;
  }
  char text[100];
  std::snprintf(text, sizeof text, ": got %.9g, want %.9g", got, want);
  expect(false, what + text);
}
// Arrays with a guard after the end: kernels must not write there.
inline void expect_all(const float* got, const std::vector<double>& want, double relative, double absolute,
                       const std::string& what) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (near(got[i], want[i], relative, absolute))
      ++checks;  // and no text is made
    else
      expect_near(got[i], want[i], relative, absolute, what + "[" + std::to_string(i) + "]");
}

constexpr float kGuard = 12345.0f;
// n floats between guards, at an odd address (no alignment to count on).
struct Buffer {
  std::vector<float> data;
  idx n;
  explicit Buffer(idx size, float value = 7.0f) : data(size + 40, kGuard), n(size) { set(value); }
  float* p() { return data.data() + 17; }
  const float* p() const { return data.data() + 17; }
  void set(float v) {
    for (idx i = 0; i < n; ++i) p()[i] = v;
  }
  float& operator[](idx i) { return p()[i]; }
  void guarded(const std::string& what) const {
    for (idx i = 0; i < 17; ++i) expect(data[i] == kGuard, what + ": wrote before the beginning");
    for (std::size_t i = 17 + n; i < data.size(); ++i) expect(data[i] == kGuard, what + ": wrote past the end");
  }
};

struct Numbers {
  std::mt19937_64 engine{12345};
  float uniform(float lo, float hi) { return std::uniform_real_distribution<float>(lo, hi)(engine); }
  void fill(Buffer& b, float lo = -2.0f, float hi = 2.0f) {
    for (idx i = 0; i < b.n; ++i) b[i] = uniform(lo, hi);
  }
};

// Rows over one buffer: packed, with a gap between rows, or scattered through a list of addresses, where several may be one row.
struct Block {
  Buffer buffer;
  std::vector<float*> list;
  Rows rows;
  idx k, n;
  enum Layout { kPacked, kGaps, kList, kRepeats, kAlone /* one row; the distance to the next means nothing */ };
  Block(idx k_, idx n_, Layout layout, float value = 7.0f) : buffer(k_ * (n_ + 3) + 1, value), k(k_), n(n_) {
    const idx stride = layout == kAlone ? idx(1) << 31 : layout == kPacked ? n : n + 3;
    rows.base = buffer.p();
    rows.stride = stride;
    if (layout == kList || layout == kRepeats) {
      for (idx m = 0; m < k; ++m) list.push_back(buffer.p() + (layout == kList ? k - 1 - m : m * m % (k / 3 + 1)) * stride);
      rows = Rows{};
      rows.ptr = list.data();
    }
  }
  Block(const Block&) = delete;
  float& at(idx m, idx i) { return rows[m][i]; }
};

inline double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

void formulas(const Kernels& k);
void formula_gradients();
void vectors(const Kernels& k);
void softmaxes(const Kernels& k);
void cells(const Kernels& k);
void random_numbers(const Kernels& k);
void updates(const Kernels& k);
void products(const Kernels& k);
void gemm_dispatch();

}  // namespace check
