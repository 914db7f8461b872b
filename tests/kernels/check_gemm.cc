// Matrix products: our small kernels of each instruction set, and gemm() with its dispatch, against double.
#include "check.h"
#include "kernels/gemm.h"

namespace check {
namespace {

struct Product {
  bool ta, tb;
  idx m, n, k, pad;
  float alpha, beta;
};
std::string name(const std::string& who, const Product& p) {
  char text[120];
  std::snprintf(text, sizeof text, " %c%c m=%ld n=%ld k=%ld pad=%ld alpha=%g beta=%g", p.ta ? 'T' : 'N',
                p.tb ? 'T' : 'N', long(p.m), long(p.n), long(p.k), long(p.pad), p.alpha, p.beta);
  return who + text;
}

template <class Fn>
void one(const std::string& who, const Product& p, Fn run) {
  Numbers numbers;
  const idx lda = (p.ta ? p.k : p.m) + p.pad, ldb = (p.tb ? p.n : p.k) + p.pad, ldc = p.m + p.pad;
  Buffer a(lda * (p.ta ? p.m : p.k)), b(ldb * (p.tb ? p.k : p.n)), c(ldc * p.n, 0.5f);
  numbers.fill(a);
  numbers.fill(b);
  if (p.beta == 0) c.set(kNan);  // must not be read
  run(p, a.p(), lda, b.p(), ldb, c.p(), ldc);
  for (idx j = 0; j < p.n; ++j)
    for (idx i = 0; i < p.m; ++i) {
      double s = 0;
      for (idx q = 0; q < p.k; ++q)
        s += double(p.ta ? a[i * lda + q] : a[q * lda + i]) * double(p.tb ? b[q * ldb + j] : b[j * ldb + q]);
      expect_near(c[j * ldc + i], p.alpha * s + (p.beta != 0 ? p.beta * 0.5 : 0), 1e-5, 1e-6 * (4 + p.k), name(who, p));
    }
  for (idx j = 0; j < p.n; ++j)  // between columns nothing changes
    for (idx i = p.m; i < ldc; ++i)
      expect(p.beta == 0 ? std::isnan(c[j * ldc + i]) : c[j * ldc + i] == 0.5f, name(who, p) + " padding");
  c.guarded(name(who, p));
}

}  // namespace

void products(const Kernels& k) {
  const auto cols = [&](const Product& p, const float* a, idx lda, const float* b, idx ldb, float* c, idx ldc) {
    k.gemm_cols(p.m, p.n, p.k, p.alpha, a, lda, b, p.tb ? ldb : 1, p.tb ? 1 : ldb, p.beta, c, ldc);
  };
  const auto dots = [&](const Product& p, const float* a, idx lda, const float* b, idx ldb, float* c, idx ldc) {
    k.gemm_dots(p.m, p.n, p.k, p.alpha, a, lda, b, ldb, p.beta, c, ldc);
  };
  const std::string isa = k.isa;
  for (idx m = 1; m <= 70; ++m)
    for (idx n = 1; n <= 14; n += m % 3 + 1)
      for (idx kk : {1, 5, 16, 33}) {
        const float beta = m % 2 ? 0.0f : 1.0f;
        one(isa + " cols", {false, false, m, n, kk, m % 4, 1.0f, beta}, cols);
        one(isa + " cols", {false, true, m, n, kk, 0, -0.5f, 1 - beta}, cols);
        one(isa + " dots", {true, false, m, n, kk, m % 3, 2.0f, beta * 0.5f}, dots);
      }
  for (idx m : {128, 200, 255, 400})
    for (idx n : {1, 2, 3, 8, 25, 41, 64}) {
      one(isa + " cols", {false, false, m, n, 60, 1, 1.0f, 1.0f}, cols);
      one(isa + " dots", {true, false, 60, n, m, 1, 1.0f, 0.0f}, dots);
      one(isa + " dots", {true, false, 131, n, m, 0, 0.5f, 1.0f}, dots);
    }
}

void gemm_dispatch() {
  const auto run = [](const Product& p, const float* a, idx lda, const float* b, idx ldb, float* c, idx ldc) {
    dnl::gemm(p.ta, p.tb, p.m, p.n, p.k, p.alpha, a, lda, b, ldb, p.beta, c, ldc);
  };
  std::printf("products run on %s\n", dnl::blas_description());
  for (int t = 0; t < 4; ++t)
    for (idx m : {0, 1, 2, 16, 50, 130, 200, 513})
      for (idx n : {0, 1, 2, 5, 16, 17, 40, 64})
        for (idx k : {0, 1, 3, 50, 200}) {
          const float beta = (m + n + k) % 3 == 0 ? 0.0f : (m + n + k) % 3 == 1 ? 1.0f : -0.5f;
          one("gemm", {bool(t & 1), bool(t & 2), m, n, k, k % 2 * 3, k == 3 ? 0.5f : 1.0f, beta}, run);
        }
  one("gemm", {false, true, 200, 50, 2000, 0, 1.0f, 1.0f}, run);
}

}  // namespace check
