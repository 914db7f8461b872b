// Matrix products: which shape goes to our small kernels and which to a BLAS, the copies that a BLAS needs, and rows
// that are multiplied once for all of their occurrences.
//
// The limits of who takes which shape were measured, see below. Does not: threads, batches of products, other types.
#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "base/outer_later.h"
#include "base/tls.h"
#include "base/vec.h"
#include "kernels/blas.h"
#include "kernels/kernels.h"
#include "kernels/repeats.h"

namespace dnl {
namespace {

// ---- who takes which shape ----------------------------------------------------------------------------------------
// Measured against OpenBLAS 0.3.34 on an AMD Zen 5 (its AVX2 kernels, which it picks there, and its SkylakeX ones),
// m, k in 20..10000 and n in 1..1000, by tests/kernels/bench/kernel_speed.cc. Against MKL nothing could be measured on
// an Intel processor, so only products with few columns, where a call costs more than the arithmetic, are taken from
// it. Products of up to eight columns, and those of one row by one row, were measured on an AMD Zen 3, too. On NEON
// nothing was measured: a BLAS takes all but single columns, as on a baseline.

enum class Own { None, Few, Most };
Own own_kernels() {
  static const Own own = [] {
    if (!std::strcmp(kernels().isa, "avx512")) return Own::Most;
    return !std::strcmp(kernels().isa, "avx2") ? Own::Few : Own::None;
  }();
  return own;
}

// Walking along a row of a matrix whose columns lie a multiple of 4 KiB apart hits few lines of the cache.
bool steps_on_pages(idx ld) { return ld % 1024 == 0; }

bool own_cols(idx n, idx k, idx lda) {
  if (blas_is_mkl() && n > 8) return false;
  switch (own_kernels()) {
    case Own::Most: return true;
    case Own::Few: return n <= 2 || ((n <= 8 || (n <= 64 && k <= 512)) && !steps_on_pages(lda));
    case Own::None: return n == 1 && k <= 512;
  }
  return false;
}
bool own_outer(idx m, idx n, idx k) {
  constexpr idx kSmall = idx(1) << 18;
  if (blas_is_mkl() && n > 8) return false;
  return own_kernels() == Own::Most && (k >= 8 || (k >= 4 && m * n <= kSmall));
}
// Of one row each: every column of C gets a multiple of the same row, and a BLAS would copy both first.
bool own_rank_one(idx k) { return k == 1 && !blas_is_mkl(); }
bool own_dots(idx n, idx k) {
  if (blas_is_mkl() && n > 8) return false;
  switch (own_kernels()) {
    case Own::Most: return true;
    case Own::Few: return n <= 64 && k <= 2048;
    case Own::None: return n == 1;
  }
  return false;
}

// ---- what a BLAS takes ------------------------------------------------------------------------------------------

void blas_product(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
                  idx ldb, float beta, float* c, idx ldc) {
  constexpr int kColMajor = 102, kNoTrans = 111, kTrans = 112;
  // Leading dimensions are checked even where there is one column and they mean nothing.
  const idx rows_a = trans_a ? k : m, rows_b = trans_b ? n : k;
  const int la = static_cast<int>(lda < rows_a ? rows_a : lda), lb = static_cast<int>(ldb < rows_b ? rows_b : ldb);
  const int lc = static_cast<int>(ldc < m ? m : ldc);
  blas().sgemm(kColMajor, trans_a ? kTrans : kNoTrans, trans_b ? kTrans : kNoTrans, static_cast<int>(m),
               static_cast<int>(n), static_cast<int>(k), alpha, a, la, b, lb, beta, c, lc);
}

// n rows of `length` floats are the columns of a matrix as they lie. Two rows of different allocations lie at one
// distance too, but a BLAS counts distances in 32 bits.
constexpr idx kFarthest = idx(1) << 24;
bool is_matrix(const Rows& r, idx n, idx length) {
  return r.regular() && (n == 1 || (r.stride >= length && r.stride <= kFarthest));
}

// Rows are copied in pieces of about this many floats, which stay in the second-level cache.
constexpr idx kPiece = idx(1) << 16;
idx rows_of_piece(idx length, idx n) {
  const idx fit = kPiece / length < 64 ? 64 : kPiece / length;
  return fit < n ? fit : n;
}

struct Room {
  Vec<float> in, out;  // copies for a BLAS
  Repeats same;
  Vec<float*> left, right;  // addresses of distinct rows
  Vec<float> sums;          // of rows that meet the same row, or of products that several rows get
  struct {
    Vec<float*> dy, x, dx;
    Vec<float> sums;
  } united;  // what unite_rows() gives
  ProductCounts count;
};
DNL_QUICK_TLS thread_local Room* t_room = nullptr;
Room& make_room() {
  static thread_local Room r;
  t_room = &r;
  return r;
}
Room& room() { return t_room ? *t_room : make_room(); }

// n rows as the columns of a matrix: where they lie, or copied.
Rows as_matrix(const Rows& r, idx n, idx length, Vec<float>& copy) {
  if (is_matrix(r, n, length)) return n == 1 ? Rows{r.base, length, nullptr} : r;  // whose distance may be anything
  copy.resize(static_cast<std::size_t>(n * length));
  const Rows to{copy.data(), length, nullptr};
  kernels().copy_rows(n, length, r, to);
  room().count.gathered += static_cast<std::uint64_t>(n * length);
  return to;
}

// gemm_rows for as many rows as make a piece.
void blas_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, const Rows& b, const Rows& add, bool acc,
               const Rows& c) {
  Room& own = room();
  const Rows x = as_matrix(b, n, k, own.in);
  if (is_matrix(c, n, m)) {
    if (add.wanted()) (acc ? kernels().add_rows : kernels().copy_rows)(n, m, add, c);
    return blas_product(trans_a, false, m, n, k, 1.0f, a, lda, x.base, x.stride, acc || add.wanted() ? 1.0f : 0.0f,
                        c.base, n == 1 ? m : c.stride);
  }
  own.out.resize(static_cast<std::size_t>(n * m));
  const Rows y{own.out.data(), m, nullptr};
  if (add.wanted()) kernels().copy_rows(n, m, add, y);
  blas_product(trans_a, false, m, n, k, 1.0f, a, lda, x.base, x.stride, add.wanted() ? 1.0f : 0.0f, y.base, m);
  (acc ? kernels().add_rows : kernels().copy_rows)(n, m, y, c);
  own.count.scattered += static_cast<std::uint64_t>(n * m);
}

// ---- products row by row --------------------------------------------------------------------------------------------

struct RowsProduct {
  bool trans_a;
  idx m, k;
  const float* a;
  idx lda;

  void of_all(idx n, const Rows& b, const Rows& add, bool acc, const Rows& c) const {
    if (trans_a ? own_dots(n, k) : own_cols(n, k, lda))
      return (trans_a ? kernels().gemm_dots : kernels().gemm_cols)(m, n, k, 1.0f, a, lda, b, add, acc ? 1.0f : 0.0f, c);
    const bool whole = is_matrix(b, n, k) && is_matrix(c, n, m);
    const idx piece = whole ? n : rows_of_piece(k > m ? k : m, n);
    for (idx j = 0; j < n; j += piece)
      blas_rows(trans_a, m, n - j < piece ? n - j : piece, k, a, lda, b.from(j), add.from(j), acc, c.from(j));
  }
  void of_rows(idx n, const Rows& b, const Rows& add, bool acc, const Rows& c) const {
    if (!of_distinct(n, b, add, acc, c) && !of_sums(n, b, add, acc, c)) of_all(n, b, add, acc, c);
  }
  bool of_distinct(idx n, const Rows& b, const Rows& add, bool acc, const Rows& c) const;
  bool of_sums(idx n, const Rows& b, const Rows& add, bool acc, const Rows& c) const;
};

void outer_of_all(idx m, idx n, idx k, const Rows& y, const Rows& x, float* c, idx ldc, const NextOuter& next) {
  if (own_outer(m, n, k) || own_rank_one(k)) return kernels().gemm_outer(m, n, k, 1.0f, y, x, 1.0f, c, ldc, next);
  Room& own = room();
  const bool whole = is_matrix(y, k, m) && is_matrix(x, k, n);
  const idx piece = whole ? k : rows_of_piece(m > n ? m : n, k);
  for (idx r = 0; r < k; r += piece) {
    const idx rows = k - r < piece ? k - r : piece;
    const Rows left = as_matrix(y.from(r), rows, m, own.out), right = as_matrix(x.from(r), rows, n, own.in);
    blas_product(false, true, m, n, rows, 1.0f, left.base, left.stride, right.base, right.stride, 1.0f, c, ldc);
  }
}

// ---- rows that repeat -----------------------------------------------------------------------------------------------
// One product for all occurrences of a row: forward its result is copied; backward what meets the row is added up
// first.

bool worth_looking(idx m, idx n) { return m >= 16 && n >= 16; }

Rows listed(const Vec<float*>& addresses) { return Rows{nullptr, 0, addresses.data()}; }

void list_distinct(const Repeats& same, const Rows& r, Vec<float*>& to) {
  to.resize(static_cast<std::size_t>(same.distinct()));
  for (idx d = 0; d < same.distinct(); ++d) to[static_cast<std::size_t>(d)] = r[same.first(d)];
}

// In n rows.
bool find_repeats(const Rows& r, idx n) {
  Room& own = room();
  if (!own.same.find(r, n)) return false;
  own.count.repeated += static_cast<std::uint64_t>(n - own.same.distinct());
  return true;
}

// For each distinct row of `same` the sum of the rows of r that meet it, m floats; where there is one it is not copied.
void list_sums(const Repeats& same, const Rows& r, idx m, Vec<float*>& to, Vec<float>& sums) {
  list_distinct(same, r, to);
  idx several = 0;
  for (idx d = 0; d < same.distinct(); ++d) several += same.repeats(d);
  sums.resize(static_cast<std::size_t>(several * m));
  float* free = sums.data();
  for (idx i = 0; i < same.rows(); ++i) {
    const idx d = same.number(i);
    if (!same.repeats(d)) continue;
    float*& sum = to[static_cast<std::size_t>(d)];
    if (same.first(d) == i) {
      sum = static_cast<float*>(std::memcpy(free, r[i], static_cast<std::size_t>(m) * sizeof(float)));
      free += m;
    } else {
      kernels().add(m, r[i], sum);
    }
  }
}

// Where rows of b repeat. False: they do not.
bool RowsProduct::of_distinct(idx n, const Rows& b, const Rows& add, bool acc, const Rows& c) const {
  const bool same_add = !add.wanted() || (add.regular() && add.stride == 0);
  Room& own = room();
  if (!worth_looking(m, k) || (acc && !same_add) || !find_repeats(b, n)) return false;
  const Repeats& same = own.same;
  const idx distinct = same.distinct();
  list_distinct(same, b, own.left);
  list_distinct(same, c, own.right);
  if (!acc && same_add) {
    of_all(distinct, listed(own.left), add, false, listed(own.right));
    for (idx i = 0; i < n; ++i)
      if (!same.is_first(i))
        std::memcpy(c[i], c[same.first(same.number(i))], static_cast<std::size_t>(m) * sizeof(float));
    return true;
  }
  own.sums.resize(static_cast<std::size_t>(distinct * m));
  const Rows y{own.sums.data(), m, nullptr};
  if (!acc) kernels().copy_rows(n, m, add, c);
  of_all(distinct, listed(own.left), acc ? add : Rows{}, false, y);
  for (idx i = 0; i < n; ++i) kernels().add(m, y[same.number(i)], c[i]);
  return true;
}

// Where rows of c repeat, which are added to.
bool RowsProduct::of_sums(idx n, const Rows& b, const Rows& add, bool acc, const Rows& c) const {
  Room& own = room();
  if (!worth_looking(m, k) || !acc || add.wanted() || !find_repeats(c, n)) return false;
  list_sums(own.same, b, k, own.left, own.sums);
  list_distinct(own.same, c, own.right);
  of_all(own.same.distinct(), listed(own.left), add, true, listed(own.right));
  return true;
}

// Where rows of x repeat.
bool outer_of_sums(idx m, idx n, idx k, const Rows& y, const Rows& x, float* c, idx ldc) {
  Room& own = room();
  if (!worth_looking(m, n) || !find_repeats(x, k)) return false;
  list_sums(own.same, y, m, own.left, own.sums);
  list_distinct(own.same, x, own.right);
  outer_of_all(m, n, own.same.distinct(), listed(own.left), listed(own.right), c, ldc, NextOuter{});
  return true;
}

// Have rows that are the same gradients that are the same?
bool share(const Repeats& same, const Rows& dx) {
  for (idx i = 0; i < same.rows(); ++i)
    if (dx[i] != dx[same.first(same.number(i))]) return false;
  return true;
}

Rows columns(const float* p, idx ld) { return Rows{const_cast<float*>(p), ld, nullptr}; }  // kernels only read them

// Nothing to multiply: C = beta * C.
void scale_columns(idx m, idx n, float beta, float* c, idx ldc) {
  for (idx j = 0; j < n; ++j) {
    if (beta == 0)
      kernels().fill(m, 0.0f, c + j * ldc);
    else if (beta != 1)
      kernels().scale(m, beta, c + j * ldc);
  }
}

}  // namespace

const char* blas_description() { return blas().description.c_str(); }
ProductCounts product_counts() { return room().count; }

void gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
          idx ldb, float beta, float* c, idx ldc) {
  if (const Products* p = other_products())
    return p->gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  if (m <= 0 || n <= 0) return;
  if (k <= 0 || alpha == 0) return scale_columns(m, n, beta, c, ldc);
  const Rows add{};
  if (trans_a && !trans_b && own_dots(n, k))
    return kernels().gemm_dots(m, n, k, alpha, a, lda, columns(b, ldb), add, beta, columns(c, ldc));
  if (!trans_a && !trans_b && own_cols(n, k, lda))
    return kernels().gemm_cols(m, n, k, alpha, a, lda, columns(b, ldb), add, beta, columns(c, ldc));
  if (!trans_a && trans_b && own_outer(m, n, k))
    return kernels().gemm_outer(m, n, k, alpha, columns(a, lda), columns(b, ldb), beta, c, ldc, NextOuter{});
  blas_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

idx rows_at_once(idx m, idx k) { return std::max<idx>(1024, (idx(1) << 21) / std::max(m, k)); }

BackRows unite_rows(idx m, idx k, const BackRows& r) {
  if (other_products()) return r;
  Room& own = room();
  const Repeats& same = own.same;
  if (!worth_looking(m, k) || !own.same.find(r.x, r.n) || (r.dx.wanted() && !share(same, r.dx))) return r;
  own.count.repeated += static_cast<std::uint64_t>(r.n - same.distinct()) * (1 + r.dx.wanted());  // of each product
  list_sums(same, r.dy, m, own.united.dy, own.united.sums);
  list_distinct(same, r.x, own.united.x);
  if (r.dx.wanted()) list_distinct(same, r.dx, own.united.dx);
  return {same.distinct(), listed(own.united.dy), listed(own.united.x), r.dx.wanted() ? listed(own.united.dx) : Rows{}};
}

void gemm_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, const Rows& b, const Rows& add, bool acc,
               const Rows& c) {
  if (const Products* p = other_products()) return p->gemm_rows(trans_a, m, n, k, a, lda, b, add, acc, c);
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    if (add.wanted()) return (acc ? kernels().add_rows : kernels().copy_rows)(n, m, add, c);
    for (idx j = 0; j < n && !acc; ++j) kernels().fill(m, 0.0f, c[j]);
    return;
  }
  const RowsProduct p{trans_a, m, k, a, lda};
  const idx most = rows_at_once(m, k);
  if (n <= most) return p.of_rows(n, b, add, acc, c);
  for (idx j = 0; j < n; j += most) p.of_rows(std::min(most, n - j), b.from(j), add.from(j), acc, c.from(j));
}

void gemm_outer(idx m, idx n, idx k, const Rows& y, const Rows& x, float* c, idx ldc, const NextOuter& next) {
  if (const Products* p = other_products()) return p->gemm_outer(m, n, k, y, x, c, ldc);
  if (m <= 0 || n <= 0) return;
  if (OuterLater* later =
          k == 1 && ldc == m ? outer_wanted(c, static_cast<std::size_t>(m), static_cast<std::size_t>(n)) : nullptr)
    return later->keep(static_cast<std::size_t>(m), y[0], static_cast<std::size_t>(n), x[0]);
  const auto some = [&](idx rows, const Rows& left, const Rows& right, const NextOuter& after) {
    if (!outer_of_sums(m, n, rows, left, right, c, ldc)) outer_of_all(m, n, rows, left, right, c, ldc, after);
  };
  const idx most = rows_at_once(m, n);
  if (k <= most) return some(k, y, x, next);
  for (idx r = 0; r < k; r += most)
    some(std::min(most, k - r), y.from(r), x.from(r), k - r <= most ? next : NextOuter{});
}

}  // namespace dnl
