// Matrix products: our small kernels of each instruction set, and gemm(), gemm_rows(), gemm_outer() with their
// dispatch, against double.
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

// Entry i, j at j * m + i: the sum over q of a(i, q) b(q, j), in the order of q. Column by column, which is quickest.
template <class A, class B>
std::vector<double> in_double(idx m, idx n, idx k, A a, B b) {
  std::vector<double> left(m * k), out(m * n);
  for (idx q = 0; q < k; ++q)
    for (idx i = 0; i < m; ++i) left[q * m + i] = a(i, q);
  for (idx j = 0; j < n; ++j)
    for (idx q = 0; q < k; ++q) {
      const double factor = b(q, j), *from = left.data() + q * m;
      double* to = out.data() + j * m;
      for (idx i = 0; i < m; ++i) to[i] += from[i] * factor;
    }
  return out;
}

template <class Fn>
void one(const std::string& who, const Product& p, Fn run) {
  if (double(p.m) * p.n * p.k > largest_product) return;
  const std::string what = name(who, p);
  Numbers numbers;
  const idx lda = (p.ta ? p.k : p.m) + p.pad, ldb = (p.tb ? p.n : p.k) + p.pad, ldc = p.m + p.pad;
  Buffer a(lda * (p.ta ? p.m : p.k)), b(ldb * (p.tb ? p.k : p.n)), c(ldc * p.n, 0.5f);
  numbers.fill(a);
  numbers.fill(b);
  if (p.beta == 0) c.set(kNan);  // must not be read
  run(p, a.p(), lda, b.p(), ldb, c.p(), ldc);
  const std::vector<double> sums = in_double(
      p.m, p.n, p.k, [&](idx i, idx q) { return p.ta ? a[i * lda + q] : a[q * lda + i]; },
      [&](idx q, idx j) { return p.tb ? b[q * ldb + j] : b[j * ldb + q]; });
  for (idx j = 0; j < p.n; ++j)
    for (idx i = 0; i < p.m; ++i) {
      const double want = p.alpha * sums[j * p.m + i] + (p.beta != 0 ? p.beta * 0.5 : 0);
      expect_near(c[j * ldc + i], want, 1e-5, 1e-6 * (4 + p.k), what);
    }
  for (idx j = 0; j < p.n; ++j)  // between columns nothing changes
    for (idx i = p.m; i < ldc; ++i)
      expect(p.beta == 0 ? std::isnan(c[j * ldc + i]) : c[j * ldc + i] == 0.5f, what + " padding");
  c.guarded(what);
}

Rows columns(const float* p, idx ld) { return Rows{const_cast<float*>(p), ld, nullptr}; }

// ---- columns that lie anywhere -----------------------------------------------------------------------------------

enum class Add { None, Each, Shared };
struct RowsProduct {
  bool ta;
  idx m, n, k;
  Block::Layout b, c;
  Add add;
  bool acc;
};
std::string name(const std::string& who, const RowsProduct& p) {
  char text[120];
  std::snprintf(text, sizeof text, " %c m=%ld n=%ld k=%ld b=%d c=%d add=%d acc=%d", p.ta ? 'T' : 'N', long(p.m),
                long(p.n), long(p.k), int(p.b), int(p.c), int(p.add), int(p.acc));
  return who + text;
}

// run(p, a, lda, b, add, c); also with rows of c that repeat, when acc.
template <class Fn>
void rows_product(const std::string& who, const RowsProduct& p, Fn run) {
  const std::string what = name(who, p);
  Numbers numbers;
  const idx lda = (p.ta ? p.k : p.m) + 1;
  Buffer a(lda * (p.ta ? p.m : p.k));
  Block b(p.n, p.k, p.b), add(p.n, p.m, p.c), c(p.n, p.m, p.c, p.acc ? 0.5f : kNan);
  numbers.fill(a);
  numbers.fill(b.buffer);
  numbers.fill(add.buffer);
  const Rows added = p.add == Add::None ? Rows{} : p.add == Add::Each ? add.rows : Rows{add.rows[0], 0, nullptr};
  std::vector<double> want = in_double(
      p.m, p.n, p.k, [&](idx i, idx q) { return p.ta ? a[i * lda + q] : a[q * lda + i]; },
      [&](idx q, idx j) { return b.at(j, q); });
  for (idx j = 0; j < p.n && p.add != Add::None; ++j)
    for (idx i = 0; i < p.m; ++i) want[j * p.m + i] += double(added[j][i]);
  run(p, a.p(), lda, b.rows, added, c.rows);
  for (idx j = 0; j < p.n; ++j)
    for (idx i = 0; i < p.m; ++i)
      expect_near(c.at(j, i), want[j * p.m + i] + (p.acc ? 0.5 : 0.0), 1e-5, 1e-6 * (4 + p.k), what);
  c.buffer.guarded(what);
  if (!p.acc) return;
  const idx distinct = p.n < 3 ? 1 : 3;  // columns j and j + 3 are one memory
  Buffer few(distinct * p.m, 0.5f);
  std::vector<float*> list;
  for (idx j = 0; j < p.n; ++j) list.push_back(few.p() + j % distinct * p.m);
  run(p, a.p(), lda, b.rows, added, Rows{nullptr, 0, list.data()});
  for (idx d = 0; d < distinct; ++d)
    for (idx i = 0; i < p.m; ++i) {
      double s = 0.5;
      for (idx j = d; j < p.n; j += distinct) s += want[j * p.m + i];
      expect_near(few[d * p.m + i], s, 1e-5, 1e-6 * (4 + p.k) * p.n, what + " repeated");
    }
  few.guarded(what + " repeated");
}

template <class Fn>
void all_layouts(const std::string& who, bool ta, idx m, idx n, idx k, Fn run) {
  for (const auto b : {Block::kPacked, Block::kGaps, Block::kList})
    for (const auto c : {Block::kPacked, Block::kList})
      for (const Add add : {Add::None, Add::Each, Add::Shared})
        for (const bool acc : {false, true}) rows_product(who, {ta, m, n, k, b, c, add, acc}, run);
}

// run(m, n, k, y, x, c, ldc) adds the sum of outer products.
template <class Fn>
void outer_product(const std::string& who, idx m, idx n, idx k, Block::Layout ly, Block::Layout lx, Fn run) {
  char text[100];
  std::snprintf(text, sizeof text, " outer m=%ld n=%ld k=%ld y=%d x=%d", long(m), long(n), long(k), int(ly), int(lx));
  const std::string what = who + text;
  Numbers numbers;
  Block y(k, m, ly), x(k, n, lx);
  const idx ldc = m + 2;
  Buffer c(ldc * n, 0.5f);
  numbers.fill(y.buffer);
  numbers.fill(x.buffer);
  run(m, n, k, y.rows, x.rows, c.p(), ldc);
  const std::vector<double> sums =
      in_double(m, n, k, [&](idx i, idx r) { return y.at(r, i); }, [&](idx r, idx j) { return x.at(r, j); });
  for (idx j = 0; j < n; ++j) {
    for (idx i = 0; i < m; ++i) expect_near(c[j * ldc + i], 0.5 + sums[j * m + i], 1e-5, 1e-6 * (4 + k), what);
    expect(c[j * ldc + m] == 0.5f && c[j * ldc + m + 1] == 0.5f, what + " padding");
  }
  c.guarded(what);
}

}  // namespace

void products(const Kernels& k) {
  const auto cols = [&](const Product& p, const float* a, idx lda, const float* b, idx ldb, float* c, idx ldc) {
    if (p.tb)
      k.gemm_outer(p.m, p.n, p.k, p.alpha, columns(a, lda), columns(b, ldb), p.beta, c, ldc, NextOuter{});
    else
      k.gemm_cols(p.m, p.n, p.k, p.alpha, a, lda, columns(b, ldb), Rows{}, p.beta, columns(c, ldc));
  };
  const auto dots = [&](const Product& p, const float* a, idx lda, const float* b, idx ldb, float* c, idx ldc) {
    k.gemm_dots(p.m, p.n, p.k, p.alpha, a, lda, columns(b, ldb), Rows{}, p.beta, columns(c, ldc));
  };
  const auto rows = [&](const RowsProduct& p, const float* a, idx lda, Rows b, Rows add, Rows c) {
    (p.ta ? k.gemm_dots : k.gemm_cols)(p.m, p.n, p.k, 1.0f, a, lda, b, add, p.acc ? 1.0f : 0.0f, c);
  };
  const auto outer = [&](idx m, idx n, idx kk, Rows y, Rows x, float* c, idx ldc) {
    k.gemm_outer(m, n, kk, 1.0f, y, x, 1.0f, c, ldc, NextOuter{y, x, kk, c});
  };
  const std::string isa = k.isa;
  for (idx m = 1; m <= 140; ++m) outer_product(isa + " rank one", m, m % 9 + 1, 1, Block::kList, Block::kList, outer);
  for (idx m = 1; m <= 70; ++m)
    for (idx n = 1; n <= 17; n += m % 3 + 1)
      for (idx kk : {1, 5, 16, 33}) {
        const float beta = m % 2 ? 0.0f : 1.0f;
        one(isa + " cols", {false, false, m, n, kk, m % 4, 1.0f, beta}, cols);
        one(isa + " cols", {false, true, m, n, kk, 0, -0.5f, 1 - beta}, cols);
        one(isa + " dots", {true, false, m, n, kk, m % 3, 2.0f, beta * 0.5f}, dots);
      }
  for (idx m : {128, 200, 255, 400})
    for (idx n : {1, 2, 3, 7, 8, 13, 16, 25, 41, 64}) {
      one(isa + " cols", {false, false, m, n, 60, 1, 1.0f, 1.0f}, cols);
      one(isa + " dots", {true, false, 60, n, m, 1, 1.0f, 0.0f}, dots);
      one(isa + " dots", {true, false, 131, n, m, 0, 0.5f, 1.0f}, dots);
    }
  for (idx m : {12, 13, 20, 24, 25, 26, 33, 48, 49, 50, 51, 52, 81, 100})  // few rows more than whole vectors
    for (idx n : {23, 24, 37})
      for (idx kk : {31, 32, 47, 512, 700}) {
        one(isa + " cols", {false, false, m, n, kk, m % 2, 1.0f, 0.0f}, cols);
        one(isa + " cols", {false, true, m, n, kk, 0, -0.5f, 0.5f}, cols);
        one(isa + " dots", {true, false, m, n, kk, m % 2, 2.0f, n % 2 ? 0.0f : 0.5f}, dots);
      }
  for (idx m : {1010, 1024})  // columns of which few stay in a cache, with more of them than that and not
    for (idx n : {55, 56, 255, 256, 481})
      for (idx kk : {200, 256, 300, 800})
        if (kk < 800 || n < 100)
          one(isa + " cols", {false, false, m, n, kk, 1024 - m, 1.0f, n % 2 ? 0.0f : 1.0f}, cols);
  for (idx m : {2, 5, 8, 81, 100, 515})  // such rows of sums of outer products, in several blocks
    for (idx n : {23, 100, 300})
      for (idx kk : {24, 170})
        for (const float beta : {0.0f, 1.0f, -0.5f})
          one(isa + " outer", {false, true, m, n, kk, m % 2, 0.5f, beta}, cols);
  for (idx m : {1, 3, 16, 37, 50, 131})
    for (idx n : {1, 2, 7, 33})
      for (idx kk : {1, 50, 133})
        for (const bool ta : {false, true}) all_layouts(isa + " rows", ta, m, n, kk, rows);
  for (const auto y : {Block::kPacked, Block::kGaps, Block::kList})
    for (const auto x : {Block::kPacked, Block::kGaps, Block::kList})
      for (idx m : {1, 16, 50, 83})
        for (idx n : {1, 5, 32})
          for (idx kk : {1, 9, 300}) outer_product(isa, m, n, kk, y, x, outer);
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
  const auto rows = [](const RowsProduct& p, const float* a, idx lda, Rows b, Rows add, Rows c) {
    dnl::gemm_rows(p.ta, p.m, p.n, p.k, a, lda, b, add, p.acc, c);
  };
  for (const bool ta : {false, true})
    for (idx m : {1, 50, 200})
      for (idx n : {1, 2, 7, 70})  // with 1100 of k a BLAS's, in one piece; 1000 columns of 600 in several
        for (idx k : {0, 1, 50, 1100}) all_layouts("gemm_rows", ta, m, n, k, rows);
  for (const bool ta : {false, true})
    for (const auto c : {Block::kPacked, Block::kGaps, Block::kList})
      rows_product("gemm_rows", {ta, 20, 1000, 600, Block::kList, c, Add::Each, true}, rows);
  for (const bool ta : {false, true})  // rows that are one memory: multiplied once
    for (const idx n : {100, 128, 500})
      for (const idx k : {16, 50, 1100})
        for (const auto c : {Block::kPacked, Block::kGaps, Block::kList})
          for (const Add add : {Add::None, Add::Each, Add::Shared})
            for (const bool acc : {false, true})
              rows_product("gemm_rows", {ta, 37, n, k, Block::kRepeats, c, add, acc}, rows);
  rows_product("gemm_rows", {false, 40, 3000, 1100, Block::kRepeats, Block::kList, Add::None, true},
               rows);  // in several pieces
  const auto outer = [](idx m, idx n, idx k, Rows y, Rows x, float* c, idx ldc) {
    dnl::gemm_outer(m, n, k, y, x, c, ldc);
  };
  for (const auto y : {Block::kPacked, Block::kList, Block::kRepeats})
    for (const idx k : {100, 128, 3000})
      for (const idx m : {16, 50, 1030}) outer_product("gemm_outer", m, 30, k, y, Block::kRepeats, outer);
  for (const auto y : {Block::kPacked, Block::kGaps, Block::kList})
    for (const auto x : {Block::kPacked, Block::kGaps, Block::kList})
      for (idx k : {1, 5, 40, 1500})
        for (idx m : {1, 50, 1030}) outer_product("gemm_outer", m, 30, k, y, x, outer);
  for (const idx m : {1, 50, 1030})
    for (const auto y : {Block::kPacked, Block::kAlone}) outer_product("gemm_outer", m, 30, 1, y, Block::kAlone, outer);
  for (const bool ta : {false, true})
    for (const idx k : {1, 50, 1100})
      for (const auto c : {Block::kPacked, Block::kAlone})
        for (const bool acc : {false, true})
          rows_product("gemm_rows", {ta, 50, 1, k, Block::kAlone, c, Add::None, acc}, rows);
}

}  // namespace check
