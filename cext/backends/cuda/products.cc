#include "backends/cuda/products.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/table.h"
#include "backends/cuda/targets.h"

namespace dnl::cuda {
namespace {

Recorder* g_recorder = nullptr;
// A product that is not recorded yet: if gates of its result are the next call, both are one record.
struct Waiting {
  bool is = false;
  Rows c;
  idx m, n;
  device::Product record;
  Recorder::Touched touched;
  std::ptrdiff_t threads;
};
Waiting g_waiting;
void record_waiting() {
  if (!g_waiting.is) return;
  g_waiting.is = false;
  g_recorder->touch_again(g_waiting.touched);
  g_recorder->add(Kernel::product, g_waiting.record, g_waiting.threads);
}
Recorder& rec() { return recorder(); }

bool same_rows(const Rows& a, const Rows& b, idx k) {
  if (a.regular() && b.regular()) return a.base == b.base && (k <= 1 || a.stride == b.stride);
  for (idx m = 0; m < k; ++m)
    if (a[m] != b[m]) return false;
  return true;
}

// Of blocks that make a tile each.
idx threads_for(idx m, idx n) {
  constexpr idx kTile = 32, kThreads = 256;
  return (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile) * kThreads;
}

// ---- by cuBLAS ------------------------------------------------------------------------------------------------------

// From so many multiplications on a launch of its own pays, which joins no other and makes no gates. The products of an
// LSTM of 512 units over 64 sentences are such.
constexpr double kLarge = double(1 << 26);

bool for_cublas(idx m, idx n, idx k, float beta) {
  constexpr idx kMost = 1 << 30;  // of its sizes, which are ints
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) >= kLarge && m < kMost && n < kMost &&
         k < kMost && (beta == 0 || beta == 1) && g_recorder->has_cublas();
}

// Rows as columns of a matrix. Such as do not lie at one distance are copied side by side.
struct Columns {
  Rows rows;
  idx count, n;
  float* copy = nullptr;  // where that is needed

  Columns(const Rows& r, idx many, idx length) : rows(r), count(many), n(length) {
    for (idx m = 1; rows.ptr && m < count; ++m)
      if (rows[m] - rows[m - 1] != rows[1] - rows[0]) return;
    if (rows.ptr) rows = Rows{rows[0], count > 1 ? rows[1] - rows[0] : n, nullptr};
    if (count == 1) rows.stride = n;
  }
  bool apart() const { return rows.regular() && rows.stride >= n && rows.stride < (1 << 30); }
  std::size_t floats() const { return apart() ? 0 : static_cast<std::size_t>(count * n); }
  // The columns, as what is read or, with the room that floats() asked for, as their copy.
  Rows place(float* room) {
    if (apart()) return rows;
    copy = room;
    return {copy, n, nullptr};
  }
  void fetch() const {
    if (copy) table().copy_rows(count, n, rows, Rows{copy, n, nullptr});
  }
};

int as_int(idx n) { return static_cast<int>(n); }

struct Left {
  const float* a;
  idx row, column;  // distances
  idx floats;       // that the matrix spans
};
Left left(bool transposed, const float* a, idx lda, idx m, idx k) {
  const idx last = transposed ? (m - 1) * lda + k : (k - 1) * lda + m;
  return transposed ? Left{a, lda, 1, last} : Left{a, 1, lda, last};
}

// b_step: 1 where b has columns of B, else the distance between their numbers, which lie side by side across columns.
void cublas_product(const Left& a, const Rows& b, idx b_step, const Rows& add_to, const Rows& c, idx m, idx n, idx k,
                    float alpha, float beta) {
  Columns right(b_step == 1 ? b : Rows{b.base, b_step, nullptr}, b_step == 1 ? n : k, b_step == 1 ? k : n);
  Columns result(c, n, m);
  float* room = recorder().temporary(right.floats() + result.floats());
  const Rows from = right.place(room), to = result.place(room + right.floats());
  right.fetch();
  const bool apart = result.copy != nullptr;
  bool sums = beta != 0 && !apart;  // with what is there
  if (add_to.wanted()) {
    sums ? table().add_rows(n, m, add_to, to) : table().copy_rows(n, m, add_to, to);
    sums = true;
  }
  Recorder& r = recorder();
  Gemm g{};
  g.transposed_a = a.row != 1;
  g.transposed_b = b_step != 1;
  g.m = as_int(m), g.n = as_int(n), g.k = as_int(k);
  g.alpha = alpha;
  g.beta = sums ? 1.0f : 0.0f;
  // The distance of columns that is given for a matrix of one column means nothing, and may be that of rows.
  g.a = r.reads(a.a, a.floats), g.lda = as_int(a.row == 1 ? std::max(a.column, m) : a.row);
  g.b = address(from.base), g.ldb = as_int(from.stride);
  r.reads(from, right.count, right.n);
  g.c = address(to.base), g.ldc = as_int(to.stride);
  r.writes(to, n, m);
  r.add(g);
  if (apart) beta != 0 ? table().add_rows(n, m, to, c) : table().copy_rows(n, m, to, c);
}

void product(const Left& a, const Rows& b, idx b_step, const Rows& add_to, const Rows& c, idx m, idx n, idx k,
             float alpha, float beta) {
  if (for_cublas(m, n, k, beta)) return cublas_product(a, b, b_step, add_to, c, m, n, k, alpha, beta);
  device::Product r{};
  r.a = k > 0 ? rec().reads(a.a, a.floats) : 0;
  r.a_row = a.row;
  r.a_col = a.column;
  r.b = k > 0 ? rec().reads(b, n, (k - 1) * b_step + 1) : device::Rows{};
  r.b_step = b_step;
  r.add = rec().reads(add_to, n, m);
  r.c = rec().writes(c, n, m);
  r.m = m;
  r.n = n;
  r.k = k;
  r.alpha = alpha;
  r.beta = beta;
  const idx threads = threads_for(m, n);
  if (alpha != 1.0f || m % 4 != 0 || g_recorder->eager) return rec().add(Kernel::product, r, threads);
  g_waiting.is = true;
  g_waiting.c = c;
  g_waiting.m = m;
  g_waiting.n = n;
  g_waiting.record = r;
  g_recorder->take_touched(&g_waiting.touched);
  g_waiting.threads = threads;
}
void cublas_outer(idx m, idx n, idx k, float alpha, const Rows& a, const Rows& b, float beta, float* c, idx ldc) {
  Columns left(a, k, m), right(b, k, n);
  float* room = recorder().temporary(left.floats() + right.floats());
  const Rows x = left.place(room), y = right.place(room + left.floats());
  left.fetch();
  right.fetch();
  Recorder& r = recorder();
  Gemm g{};
  g.transposed_b = true;
  g.m = as_int(m), g.n = as_int(n), g.k = as_int(k);
  g.alpha = alpha, g.beta = beta;
  g.a = address(x.base), g.lda = as_int(x.stride);
  g.b = address(y.base), g.ldb = as_int(y.stride);
  g.c = r.writes(c, (n - 1) * ldc + m), g.ldc = as_int(ldc);
  r.reads(x, k, m);
  r.reads(y, k, n);
  r.add(g);
}
// Where rows of c repeat, which only sums do: the products lie elsewhere first.
void product_rows(const Left& a, const Rows& b, const Rows& add_to, const Rows& c, idx m, idx n, idx k, float alpha,
                  float beta) {
  if (m <= 0 || n <= 0) return;
  if (beta == 0 || Targets(n, m, c).apart) return product(a, b, 1, add_to, c, m, n, k, alpha, beta);
  const Rows between{rec().temporary(static_cast<std::size_t>(m * n)), m, nullptr};
  product(a, b, 1, add_to, between, m, n, k, alpha, 0.0f);
  table().add_rows(n, m, between, c);
}

}  // namespace

void use(Recorder* recorder) { g_recorder = recorder; }
void begin_call() {
  g_waiting.is = false;
  g_recorder->begin_call();
}
void end_call() { record_waiting(); }
Recorder& recorder() {
  record_waiting();
  return *g_recorder;
}

void lstm_fwd(idx k, idx h, float forget_bias, Rows gates, Rows c_prev, Rows c, Rows h_out) {
  if (k * h <= 0) return;
  const bool of_product = g_waiting.is && g_waiting.m == 4 * h && g_waiting.n == k && same_rows(g_waiting.c, gates, k);
  Recorder& to = of_product ? *g_recorder : rec();
  device::Lstm r{};
  r.gates = of_product ? g_waiting.record.c : to.writes(gates, k, 4 * h);
  r.c_prev = to.reads(c_prev, k, h);
  r.c = to.writes(c, k, h);
  r.h_out = to.writes(h_out, k, h);
  r.k = k;
  r.h = h;
  r.forget_bias = forget_bias;
  if (!of_product) return to.add(Kernel::lstm, r, k * h);
  g_waiting.is = false;
  to.touch_again(g_waiting.touched);
  to.add(Kernel::lstm_step, device::LstmStep{g_waiting.record, r}, g_waiting.threads);
}
void gemm_cols(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add_to, float beta,
               const Rows& c) {
  product_rows(left(false, a, lda, m, k), b, add_to, c, m, n, k, alpha, beta);
}
void gemm_dots(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add_to, float beta,
               const Rows& c) {
  product_rows(left(true, a, lda, m, k), b, add_to, c, m, n, k, alpha, beta);
}
void gemm_outer(idx m, idx n, idx k, float alpha, const Rows& a, const Rows& b, float beta, float* c, idx ldc,
                const NextOuter&) {
  if (m <= 0 || n <= 0) return;
  if (for_cublas(m, n, k, beta)) return cublas_outer(m, n, k, alpha, a, b, beta, c, ldc);
  device::Outer r{};
  r.a = rec().reads(a, k, m);
  r.b = rec().reads(b, k, n);
  r.c = rec().writes(c, (n - 1) * ldc + m);
  r.ldc = ldc;
  r.m = m;
  r.n = n;
  r.k = k;
  r.alpha = alpha;
  r.beta = beta;
  rec().add(Kernel::outer, r, threads_for(m, n));
}

namespace {

void any_gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
              idx ldb, float beta, float* c, idx ldc) {
  if (m <= 0 || n <= 0) return;
  float* from = const_cast<float*>(b);
  const Rows columns = trans_b ? Rows{from, 1, nullptr} : Rows{from, ldb, nullptr};
  product(left(trans_a, a, lda, m, k), columns, trans_b ? ldb : 1, Rows{}, Rows{c, ldc, nullptr}, m, n, k, alpha, beta);
}
void any_gemm_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, const Rows& b, const Rows& add_to,
                   bool acc, const Rows& c) {
  product_rows(left(trans_a, a, lda, m, k), b, add_to, c, m, n, k, 1.0f, acc ? 1.0f : 0.0f);
}
void any_gemm_outer(idx m, idx n, idx k, const Rows& y, const Rows& x, float* c, idx ldc) {
  if (k > 0) gemm_outer(m, n, k, 1.0f, y, x, 1.0f, c, ldc, NextOuter{});
}

}  // namespace

const Products& products() {
  static const Products made = {any_gemm, any_gemm_rows, any_gemm_outer};
  return made;
}

}  // namespace dnl::cuda
