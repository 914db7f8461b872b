// Matrix products: which shape goes to our small kernels and which to a BLAS, and the copies that a BLAS needs.
//
// The limits of who takes which shape were measured, see below. Does not: threads, batches of products, other types.
#include "kernels/gemm.h"

#include <cstring>

#include "base/vec.h"
#include "kernels/blas.h"
#include "kernels/kernels.h"

namespace dnl {
namespace {

// ---- who takes which shape ----------------------------------------------------------------------------------------
// Measured against OpenBLAS 0.3.34 on an AMD Zen 5 (its AVX2 kernels, which it picks there, and its SkylakeX ones),
// m, k in 20..10000 and n in 1..1000, by tests/kernels/bench/kernel_speed.cc. Against MKL nothing could be measured on
// an Intel processor, so only products with few columns, where a call costs more than the arithmetic, are taken from
// it.

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
    case Own::Few: return n <= 64 && k <= 512 && !steps_on_pages(lda);
    case Own::None: return n == 1 && k <= 512;
  }
  return false;
}
bool own_outer(idx n, idx k) {
  if (blas_is_mkl() && n > 8) return false;
  return own_kernels() == Own::Most && k >= 8;
}
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

struct CopyRoom {
  Vec<float> in, out;
  ProductCopies count = {0, 0};
};
CopyRoom& copy_room() {
  static thread_local CopyRoom room;
  return room;
}

// n rows as the columns of a matrix: where they lie, or copied into `room`.
Rows as_matrix(const Rows& r, idx n, idx length, Vec<float>& room) {
  if (is_matrix(r, n, length)) return r;
  room.resize(static_cast<std::size_t>(n * length));
  const Rows to{room.data(), length, nullptr};
  kernels().copy_rows(n, length, r, to);
  copy_room().count.gathered += static_cast<std::uint64_t>(n * length);
  return to;
}

// gemm_rows for as many rows as make a piece.
void blas_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, Rows b, Rows add, bool acc, Rows c) {
  CopyRoom& room = copy_room();
  const Rows x = as_matrix(b, n, k, room.in);
  if (is_matrix(c, n, m)) {
    if (add.wanted()) (acc ? kernels().add_rows : kernels().copy_rows)(n, m, add, c);
    return blas_product(trans_a, false, m, n, k, 1.0f, a, lda, x.base, x.stride, acc || add.wanted() ? 1.0f : 0.0f,
                        c.base, c.stride);
  }
  room.out.resize(static_cast<std::size_t>(n * m));
  const Rows y{room.out.data(), m, nullptr};
  if (add.wanted()) kernels().copy_rows(n, m, add, y);
  blas_product(trans_a, false, m, n, k, 1.0f, a, lda, x.base, x.stride, add.wanted() ? 1.0f : 0.0f, y.base, m);
  (acc ? kernels().add_rows : kernels().copy_rows)(n, m, y, c);
  room.count.scattered += static_cast<std::uint64_t>(n * m);
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
ProductCopies product_copies() { return copy_room().count; }

void gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
          idx ldb, float beta, float* c, idx ldc) {
  if (m <= 0 || n <= 0) return;
  if (k <= 0 || alpha == 0) return scale_columns(m, n, beta, c, ldc);
  const Rows add{};
  if (trans_a && !trans_b && own_dots(n, k))
    return kernels().gemm_dots(m, n, k, alpha, a, lda, columns(b, ldb), add, beta, columns(c, ldc));
  if (!trans_a && !trans_b && own_cols(n, k, lda))
    return kernels().gemm_cols(m, n, k, alpha, a, lda, columns(b, ldb), add, beta, columns(c, ldc));
  if (!trans_a && trans_b && own_outer(n, k))
    return kernels().gemm_outer(m, n, k, alpha, columns(a, lda), columns(b, ldb), beta, c, ldc, Rows{}, 0);
  blas_product(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, Rows b, Rows add, bool acc, Rows c) {
  if (m <= 0 || n <= 0) return;
  const float beta = acc ? 1.0f : 0.0f;
  if (k <= 0) {
    if (add.wanted()) return (acc ? kernels().add_rows : kernels().copy_rows)(n, m, add, c);
    for (idx j = 0; j < n && !acc; ++j) kernels().fill(m, 0.0f, c[j]);
    return;
  }
  if (trans_a ? own_dots(n, k) : own_cols(n, k, lda))
    return (trans_a ? kernels().gemm_dots : kernels().gemm_cols)(m, n, k, 1.0f, a, lda, b, add, beta, c);
  const bool whole = is_matrix(b, n, k) && is_matrix(c, n, m);
  const idx piece = whole ? n : rows_of_piece(k > m ? k : m, n);
  for (idx j = 0; j < n; j += piece)
    blas_rows(trans_a, m, n - j < piece ? n - j : piece, k, a, lda, b.from(j), add.from(j), acc, c.from(j));
}

void gemm_outer(idx m, idx n, idx k, Rows y, Rows x, float* c, idx ldc, Rows next, idx next_k) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  if (own_outer(n, k)) return kernels().gemm_outer(m, n, k, 1.0f, y, x, 1.0f, c, ldc, next, next_k);
  CopyRoom& room = copy_room();
  const bool whole = is_matrix(y, k, m) && is_matrix(x, k, n);
  const idx piece = whole ? k : rows_of_piece(m > n ? m : n, k);
  for (idx r = 0; r < k; r += piece) {
    const idx rows = k - r < piece ? k - r : piece;
    const Rows left = as_matrix(y.from(r), rows, m, room.out),
               right = as_matrix(x.from(r), rows, n, room.in);
    blas_product(false, true, m, n, rows, 1.0f, left.base, left.stride, right.base, right.stride, 1.0f, c, ldc);
  }
}

}  // namespace dnl
