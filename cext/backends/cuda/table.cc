#include "backends/cuda/table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/formula_info.h"

namespace dnl::cuda {
namespace {

Recorder* g_recorder = nullptr;
Recorder& rec() { return *g_recorder; }

device::Rows list_element(const Rows& rows, bool written, idx k, idx n) {
  return written ? rec().writes(rows, k, n) : rec().reads(rows, k, n);
}

// ---- moving and adding ---------------------------------------------------------------------------------------------

void fill_rows(idx k, idx n, float v, const Rows& y) {
  if (k * n > 0) rec().add(Kernel::fill, device::Fill{rec().writes(y, k, n), k, n, v}, k * n);
}
void fill(idx n, float v, float* y) { fill_rows(1, n, v, Rows{y, 0, nullptr}); }

void scale_to(idx n, float a, const float* x, float* y, bool acc) {
  if (n <= 0) return;
  const u64 from = rec().reads(x, n);
  rec().add(Kernel::scale_to, device::ScaleTo{from, rec().writes(y, n), n, a, acc}, n);
}
void add(idx n, const float* x, float* y) { scale_to(n, 1.0f, x, y, true); }
void axpy(idx n, float a, const float* x, float* y) { scale_to(n, a, x, y, true); }
void scale(idx n, float a, float* x) { scale_to(n, a, x, x, false); }

void move_rows(idx k, idx n, const Rows& from, const Rows& to, bool add_to) {
  if (k * n <= 0) return;
  const device::Rows source = rec().reads(from, k, n);
  rec().add(Kernel::copy_rows, device::CopyRows{source, rec().writes(to, k, n), k, n, add_to}, k * n);
}
void copy_rows(idx k, idx n, Rows from, Rows to) { move_rows(k, n, from, to, false); }

void sum_rows(idx k, idx n, Rows from, float* y, bool acc) {
  if (n <= 0) return;
  const device::Rows source = rec().reads(from, k, n);
  rec().add(Kernel::sum_rows, device::SumRows{source, rec().writes(y, n), k, n, acc}, n * 8);
}
void scale_rows(idx k, idx n, Rows x, const float* a, float* y, idx step, float* sums) {
  if (k * n <= 0) return;
  const device::Rows source = rec().reads(x, k, n);
  const u64 factors = rec().reads(a, k);
  const Rows rows{y, step, nullptr};
  rec().writes(rows, k, n);
  rec().add(Kernel::scale_rows,
            device::ScaleRows{source, factors, static_cast<u64>(reinterpret_cast<std::uintptr_t>(y)), k, n, step},
            k * n);
  if (sums) sum_rows(k, n, rows, sums, true);
}
void transpose_strided(idx k, idx n, const float* x, idx from_step, float* y, idx to_step, bool acc) {
  if (k * n <= 0) return;
  const u64 from = rec().reads(x, (k - 1) * from_step + n), to = rec().writes(y, (n - 1) * to_step + k);
  rec().add(Kernel::transpose, device::Transpose{from, to, k, n, from_step, to_step, acc}, k * n);
}
void transpose(idx m, idx n, const float* x, float* y, bool acc) { transpose_strided(n, m, x, m, y, n, acc); }

// Rows of one list that are written: whether all are apart, and the order of their addresses.
struct Targets {
  Vec<u32> order;
  bool apart = true, equal_or_apart = true;

  Targets(idx k, idx n, const Rows& rows) {
    if (rows.regular() && (k <= 1 || std::abs(rows.stride) >= n)) return;
    order.resize(static_cast<std::size_t>(k));
    for (idx m = 0; m < k; ++m) order[static_cast<std::size_t>(m)] = static_cast<u32>(m);
    std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return rows[a] < rows[b]; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const std::ptrdiff_t distance = rows[order[i]] - rows[order[i - 1]];
      apart = apart && distance >= n;
      equal_or_apart = equal_or_apart && (distance == 0 || distance >= n);
    }
  }
};

// Repeated rows: each target gets the sum of what goes there, in order.
void gather_sums(idx k, idx n, const Rows& from, const Rows& to, const Targets& t) {
  Vec<u32> begin;
  Vec<float*> target;
  for (u32 i = 0; i < t.order.size(); ++i) {
    float* at = to[t.order[i]];
    if (!target.empty() && target.back() == at) continue;
    begin.push_back(i);
    target.push_back(at);
  }
  begin.push_back(static_cast<u32>(t.order.size()));
  const idx targets = static_cast<idx>(target.size());
  device::GatherSums r{};
  r.from = rec().reads(from, k, n);
  r.to = rec().writes(Rows{nullptr, 0, target.data()}, targets, n);
  r.k = targets;
  r.n = n;
  r.begin = rec().stage(begin.data(), begin.size() * sizeof(u32));
  r.source = rec().stage(t.order.data(), t.order.size() * sizeof(u32));
  rec().add(Kernel::gather_sums, r, targets * n);
}
void add_rows(idx k, idx n, Rows from, Rows to) {
  if (k * n <= 0) return;
  const Targets t(k, n, to);
  if (t.apart) return move_rows(k, n, from, to, true);
  if (t.equal_or_apart) return gather_sums(k, n, from, to, t);
  for (idx m = 0; m < k; ++m) add(n, from[m], to[m]);  // rows that overlap: one after another
}

// ---- elementwise ---------------------------------------------------------------------------------------------------

// What formulas say of themselves; their code is not instantiated here.
Vec<FormulaInfo> g_unary_info, g_binary_info;
#define DNL_UNARY(S) const bool S##_listed = (g_unary_info.push_back(S::info), true);
#define DNL_BINARY(S) const bool S##_listed = (g_binary_info.push_back(S::info), true);
#include "kernels/formulas.h"
#undef DNL_UNARY
#undef DNL_BINARY

template <class Record>
void take_attributes(Record& r, const FormulaInfo& info, const float* a) {
  for (int i = 0; i < info.n_attr(); ++i) r.a[i] = a ? a[i] : info.attr[i].value;
}

constexpr int kMostFormulas = 128;
UnaryKernel g_unary[kMostFormulas];
BinaryKernel g_binary[kMostFormulas];

template <int Id>
void unary_fwd(idx n, const float* x, float* y, const float* a) {
  if (n <= 0) return;
  device::Unary r{};
  r.x = rec().reads(x, n);
  r.y = rec().writes(y, n);
  r.n = n;
  r.formula = Id;
  take_attributes(r, g_unary_info[Id], a);
  rec().add(Kernel::unary, r, n);
}
template <int Id>
void unary_bwd(idx n, const float* x, const float* y, const float* dy, float* dx, const float* a, bool acc) {
  if (n <= 0) return;
  const unsigned reads = g_unary[Id].reads;
  device::UnaryBack r{};
  if (reads & 1u) r.x = rec().reads(x, n);
  if (reads & 4u) r.y = rec().reads(y, n);
  r.dy = rec().reads(dy, n);
  r.dx = rec().writes(dx, n);
  r.n = n;
  r.formula = Id;
  r.acc = acc;
  take_attributes(r, g_unary_info[Id], a);
  rec().add(Kernel::unary_back, r, n);
}
template <int Id>
void binary_fwd(idx n, const float* u, idx su, const float* v, idx sv, float* y, const float* a) {
  if (n <= 0) return;
  device::Binary r{};
  r.u = rec().reads(u, su ? n : 1);
  r.v = rec().reads(v, sv ? n : 1);
  r.y = rec().writes(y, n);
  r.su = su;
  r.sv = sv;
  r.n = n;
  r.formula = Id;
  take_attributes(r, g_binary_info[Id], a);
  rec().add(Kernel::binary, r, n);
}
void binary_gradient(int id, idx n, const float* u, idx su, const float* v, idx sv, const float* y, const float* dy,
                     float* d, bool second, bool acc, const float* a) {
  const unsigned reads = g_binary[id].reads;
  const bool sums = (second ? sv : su) == 0;
  device::BinaryBack r{};
  if (reads & 1u) r.u = rec().reads(u, su ? n : 1);
  if (reads & 2u) r.v = rec().reads(v, sv ? n : 1);
  if (reads & 4u) r.y = rec().reads(y, n);
  r.dy = rec().reads(dy, n);
  r.d = rec().writes(d, sums ? 1 : n);
  r.su = su;
  r.sv = sv;
  r.n = n;
  r.formula = id;
  r.second = second;
  r.acc = acc;
  take_attributes(r, g_binary_info[static_cast<std::size_t>(id)], a);
  rec().add(sums ? Kernel::binary_back_sum : Kernel::binary_back, r, sums ? 1 : n);
}
template <int Id>
void binary_bwd(idx n, const float* u, idx su, const float* v, idx sv, const float* y, const float* dy, float* du,
                bool acc_u, float* dv, bool acc_v, const float* a) {
  if (du && (n > 0 || su == 0)) binary_gradient(Id, n, u, su, v, sv, y, dy, du, false, acc_u, a);
  if (dv && (n > 0 || sv == 0)) binary_gradient(Id, n, u, su, v, sv, y, dy, dv, true, acc_v, a);
}

template <int... Ids>
void fill_unary(std::integer_sequence<int, Ids...>) {
  auto row = [](std::size_t id, auto fwd, auto bwd) {
    if (id >= g_unary_info.size()) return;
    const FormulaInfo& f = g_unary_info[id];
    g_unary[id] = {f.name, fwd, bwd, f.n_attr(), f.reads};
  };
  (row(Ids, unary_fwd<Ids>, unary_bwd<Ids>), ...);
}
template <int... Ids>
void fill_binary(std::integer_sequence<int, Ids...>) {
  auto row = [](std::size_t id, auto fwd, auto bwd) {
    if (id >= g_binary_info.size()) return;
    const FormulaInfo& f = g_binary_info[id];
    g_binary[id] = {f.name, fwd, bwd, f.n_attr(), f.reads};
  };
  (row(Ids, binary_fwd<Ids>, binary_bwd<Ids>), ...);
}

// ---- whole lines ---------------------------------------------------------------------------------------------------

double reduce(device::Reduction what, idx n, const float* x, const float* y) {
  const double zero = 0;
  device::Reduce r{};
  r.to = rec().writes_bytes(rec().stage(&zero, sizeof zero), sizeof zero);
  r.x = rec().reads(x, n);
  r.y = rec().reads(y, n);
  r.n = n;
  r.what = what;
  const u64 to = r.to;
  rec().add(Kernel::reduce, r, 1);
  double out = 0;
  rec().download(&out, to, sizeof out);
  return out;
}
float sum(idx n, const float* x) { return static_cast<float>(reduce(device::kSum, n, x, nullptr)); }
double sum_squares(idx n, const float* x) { return reduce(device::kSumSquares, n, x, nullptr); }
float dot(idx n, const float* x, const float* y) { return static_cast<float>(reduce(device::kDot, n, x, y)); }
float max(idx n, const float* x) { return static_cast<float>(reduce(device::kMax, n, x, nullptr)); }
idx argmax(idx n, const float* x) { return static_cast<idx>(reduce(device::kArgmax, n, x, nullptr)); }
bool all_finite(idx n, const float* x) { return reduce(device::kFinite, n, x, nullptr) == 0; }
float logsumexp(idx n, const float* x) { return static_cast<float>(reduce(device::kLogSumExp, n, x, nullptr)); }

void exp_below(idx n, const float* x, float* y, float* largest, double* total) {
  double state[2] = {*largest, *total};
  const u64 at = rec().writes_bytes(rec().stage(state, sizeof state), sizeof state);
  const u64 from = rec().reads(x, n);
  rec().add(Kernel::exp_below, device::ExpBelow{from, rec().writes(y, n), at, n}, 1);
  rec().download(state, at, sizeof state);
  *largest = static_cast<float>(state[0]);
  *total = state[1];
}
void softmax_of(idx n, const float* x, float* y, bool logarithm) {
  if (n <= 0) return;
  const u64 from = rec().reads(x, n);
  device::Softmax r{from, rec().writes(y, n), n, logarithm};
  rec().add(Kernel::softmax, r, 1);
}
void softmax(idx n, const float* x, float* y) { softmax_of(n, x, y, false); }
void log_softmax(idx n, const float* x, float* y) { softmax_of(n, x, y, true); }
void softmax_back(idx n, const float* y, const float* dy, float* dx, bool logarithm, bool acc) {
  if (n <= 0) return;
  const u64 value = rec().reads(y, n), in = rec().reads(dy, n);
  rec().add(Kernel::softmax_back, device::SoftmaxBack{value, in, rec().writes(dx, n), n, logarithm, acc}, 1);
}
void softmax_bwd(idx n, const float* y, const float* dy, float* dx, bool acc) {
  softmax_back(n, y, dy, dx, false, acc);
}
void log_softmax_bwd(idx n, const float* y, const float* dy, float* dx, bool acc) {
  softmax_back(n, y, dy, dx, true, acc);
}
void exp_shifted(idx n, const float* x, float lse, float d, float* dx, bool acc) {
  if (n <= 0) return;
  const u64 from = rec().reads(x, n);
  rec().add(Kernel::exp_shifted, device::ExpShifted{from, rec().writes(dx, n), n, lse, d, acc}, n);
}
void layer_norm(idx n, const float* x, const float* g, const float* b, float* y, float* stats) {
  if (n <= 0) return;
  device::LayerNorm r{rec().reads(x, n), rec().reads(g, n), rec().reads(b, n), 0, 0, n};
  r.y = rec().writes(y, n);
  r.stats = rec().writes(stats, 2);
  rec().add(Kernel::layer_norm, r, 1);
}
void layer_norm_bwd(idx n, const float* x, const float* g, const float* stats, const float* dy, float* dx, bool acc,
                    float* dg, float* db) {
  if (n <= 0) return;
  device::LayerNormBack r{
      rec().reads(x, n), rec().reads(g, n), rec().reads(stats, 2), rec().reads(dy, n), 0, 0, 0, n, acc};
  r.dx = rec().writes(dx, n);
  r.dg = rec().writes(dg, n);
  r.db = rec().writes(db, n);
  rec().add(Kernel::layer_norm_back, r, 1);
}
void attention_scores(idx n, idx columns, const float* keys, const float* query, const float* v, float* scores) {
  if (columns <= 0) return;
  device::AttentionScores r{rec().reads(keys, n * columns), rec().reads(query, n), rec().reads(v, n), 0, n, columns};
  r.scores = rec().writes(scores, columns);
  rec().add(Kernel::attention_scores, r, columns * 128);
}
void attention_scores_bwd(idx n, idx columns, const float* keys, const float* query, const float* v,
                          const float* dscores, float* dkeys, bool acc, float* dquery, float* dv) {
  if (n <= 0) return;
  device::AttentionScoresBack r{};
  r.keys = rec().reads(keys, n * columns);
  r.query = rec().reads(query, n);
  r.v = rec().reads(v, n);
  r.dscores = rec().reads(dscores, columns);
  r.dkeys = rec().writes(dkeys, n * columns);
  r.dquery = rec().writes(dquery, n);
  r.dv = rec().writes(dv, n);
  r.n = n;
  r.columns = columns;
  r.acc = acc;
  rec().add(Kernel::attention_scores_back, r, n);
}

// ---- recurrent cells -----------------------------------------------------------------------------------------------

void lstm_fwd(idx k, idx h, float forget_bias, Rows gates, Rows c_prev, Rows c, Rows h_out) {
  if (k * h <= 0) return;
  device::Lstm r{};
  r.gates = rec().writes(gates, k, 4 * h);
  r.c_prev = rec().reads(c_prev, k, h);
  r.c = rec().writes(c, k, h);
  r.h_out = rec().writes(h_out, k, h);
  r.k = k;
  r.h = h;
  r.forget_bias = forget_bias;
  rec().add(Kernel::lstm, r, k * h);
}
void lstm_bwd(idx k, idx h, Rows gates, Rows c_prev, Rows c, Rows dh, Rows dc, Rows da, bool acc_a, Rows dc_prev,
              bool acc_c) {
  if (k * h <= 0) return;
  device::LstmBack r{};
  r.gates = rec().reads(gates, k, 4 * h);
  r.c_prev = rec().reads(c_prev, k, h);
  r.c = rec().reads(c, k, h);
  r.dh = rec().reads(dh, k, h);
  r.dc = rec().reads(dc, k, h);
  r.da = rec().writes(da, k, 4 * h);
  r.dc_prev = rec().writes(dc_prev, k, h);
  r.k = k;
  r.h = h;
  r.acc_a = acc_a;
  r.acc_c = acc_c;
  rec().add(Kernel::lstm_back, r, k * h);
}
void gru_zr_fwd(idx k, idx h, Rows zr, Rows h_prev, Rows rh) {
  if (k * h <= 0) return;
  device::GruZr r{rec().writes(zr, k, 2 * h), rec().reads(h_prev, k, h), rec().writes(rh, k, h), k, h};
  rec().add(Kernel::gru_zr, r, k * h);
}
void gru_out_fwd(idx k, idx h, Rows zr, Rows h_prev, Rows cand, Rows h_out) {
  if (k * h <= 0) return;
  device::GruOut r{
      rec().reads(zr, k, 2 * h), rec().reads(h_prev, k, h), rec().writes(cand, k, h), rec().writes(h_out, k, h), k, h};
  rec().add(Kernel::gru_out, r, k * h);
}
void gru_out_bwd(idx k, idx h, Rows zr, Rows h_prev, Rows cand, Rows dh, Rows dcand, Rows dzr, Rows dh_prev, bool acc) {
  if (k * h <= 0) return;
  device::GruOutBack r{};
  r.zr = rec().reads(zr, k, 2 * h);
  r.h_prev = rec().reads(h_prev, k, h);
  r.cand = rec().reads(cand, k, h);
  r.dh = rec().reads(dh, k, h);
  r.dcand = rec().writes(dcand, k, h);
  r.dzr = rec().writes(dzr, k, 2 * h);
  r.dh_prev = rec().writes(dh_prev, k, h);
  r.k = k;
  r.h = h;
  r.acc = acc;
  rec().add(Kernel::gru_out_back, r, k * h);
}
void gru_zr_bwd(idx k, idx h, Rows zr, Rows h_prev, Rows drh, Rows dzr, Rows dh_prev) {
  if (k * h <= 0) return;
  device::GruZrBack r{};
  r.zr = rec().reads(zr, k, 2 * h);
  r.h_prev = rec().reads(h_prev, k, h);
  r.drh = rec().reads(drh, k, h);
  r.dzr = rec().writes(dzr, k, 2 * h);
  r.dh_prev = rec().writes(dh_prev, k, h);
  r.k = k;
  r.h = h;
  rec().add(Kernel::gru_zr_back, r, k * h);
}
u64 stage_lists(const Rows* rows, int count, bool written, idx k, idx h) {
  Vec<device::Rows> all;
  for (int i = 0; i < count; ++i) all.push_back(list_element(rows[i], written, k, h));
  return count ? rec().stage(all.data(), all.size() * sizeof(device::Rows)) : 0;
}
void tree_lstm_fwd(idx k, idx h, int n_children, Rows iog, const Rows* f, const Rows* c_child, float forget_bias,
                   Rows c, Rows h_out) {
  if (k * h <= 0) return;
  device::TreeLstm r{};
  r.iog = rec().writes(iog, k, 3 * h);
  r.c = rec().writes(c, k, h);
  r.h_out = rec().writes(h_out, k, h);
  r.f = stage_lists(f, n_children, true, k, h);
  r.c_child = stage_lists(c_child, n_children, false, k, h);
  r.k = k;
  r.h = h;
  r.n_children = n_children;
  r.forget_bias = forget_bias;
  rec().add(Kernel::tree_lstm, r, k * h);
}
void tree_lstm_bwd(idx k, idx h, int n_children, Rows iog, const Rows* f, const Rows* c_child, Rows c, Rows dh, Rows dc,
                   Rows diog, const Rows* df, const Rows* dc_child, const bool* acc_child) {
  if (k * h <= 0) return;
  device::TreeLstmBack r{};
  r.iog = rec().reads(iog, k, 3 * h);
  r.c = rec().reads(c, k, h);
  r.dh = rec().reads(dh, k, h);
  r.dc = rec().reads(dc, k, h);
  r.diog = rec().writes(diog, k, 3 * h);
  r.f = stage_lists(f, n_children, false, k, h);
  r.c_child = stage_lists(c_child, n_children, false, k, h);
  r.df = stage_lists(df, n_children, true, k, h);
  r.dc_child = stage_lists(dc_child, n_children, true, k, h);
  Vec<std::int32_t> acc;
  for (int i = 0; i < n_children; ++i) acc.push_back(acc_child[i]);
  r.acc_child = n_children ? rec().stage(acc.data(), acc.size() * sizeof(std::int32_t)) : 0;
  r.k = k;
  r.h = h;
  r.n_children = n_children;
  rec().add(Kernel::tree_lstm_back, r, k * h);
}

// ---- random numbers, updates ---------------------------------------------------------------------------------------

void random_numbers(idx n, std::uint64_t seed, device::Distribution what, float a, float b, float* y) {
  if (n > 0) rec().add(Kernel::random_numbers, device::RandomNumbers{rec().writes(y, n), seed, n, what, a, b}, n);
}
void random_uniform(idx n, std::uint64_t seed, float lo, float hi, float* y) {
  random_numbers(n, seed, device::kUniform, lo, hi, y);
}
void random_normal(idx n, std::uint64_t seed, float mean, float std, float* y) {
  random_numbers(n, seed, device::kNormal, mean, std, y);
}
void random_mask(idx n, std::uint64_t seed, float keep, float value, float* y) {
  random_numbers(n, seed, device::kMask, keep, value, y);
}

template <device::Rule Which>
void update(const UpdateArgs& u) {
  if (u.n <= 0) return;
  device::Update r{};
  r.w = rec().writes(u.w, u.n);
  r.g = rec().writes(u.g, u.n);
  r.s0 = rec().writes(u.s0, u.n);
  r.s1 = rec().writes(u.s1, u.n);
  r.s2 = rec().writes(u.s2, u.n);
  r.rows = 1;
  r.n = u.n;
  r.rule = Which;
  r.gscale = u.gscale;
  r.wdecay = u.wdecay;
  std::copy(u.c, u.c + 6, r.c);
  rec().add(Kernel::update, r, u.n);
}
void update_eg(const UpdateArgs& u) {
  update<device::kEgBegin>(u);
  softmax(u.n, u.w, u.w);
  if (u.wdecay != 0) scale(u.n, 1.0f - u.wdecay, u.w);
}

// ---- products ------------------------------------------------------------------------------------------------------

struct Left {
  const float* a;
  idx row, column;  // distances
  idx floats;       // that the matrix spans
};
Left left(bool transposed, const float* a, idx lda, idx m, idx k) {
  const idx last = transposed ? (m - 1) * lda + k : (k - 1) * lda + m;
  return transposed ? Left{a, lda, 1, last} : Left{a, 1, lda, last};
}

void product(const Left& a, const Rows& b, idx b_step, const Rows& add_to, const Rows& c, idx m, idx n, idx k,
             float alpha, float beta) {
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
  constexpr idx kTile = 64, kThreads = 256;
  rec().add(Kernel::product, r, (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile) * kThreads);
}
// Where rows of c repeat, which only sums do: the products lie elsewhere first.
void product_rows(const Left& a, const Rows& b, const Rows& add_to, const Rows& c, idx m, idx n, idx k, float alpha,
                  float beta) {
  if (m <= 0 || n <= 0) return;
  if (beta == 0 || Targets(n, m, c).apart) return product(a, b, 1, add_to, c, m, n, k, alpha, beta);
  const Rows between{rec().temporary(static_cast<std::size_t>(m * n)), m, nullptr};
  product(a, b, 1, add_to, between, m, n, k, alpha, 0.0f);
  add_rows(n, m, between, c);
}
void gemm_cols(idx m, idx n, idx k, float alpha, const float* a, idx lda, Rows b, Rows add_to, float beta, Rows c) {
  product_rows(left(false, a, lda, m, k), b, add_to, c, m, n, k, alpha, beta);
}
void gemm_dots(idx m, idx n, idx k, float alpha, const float* a, idx lda, Rows b, Rows add_to, float beta, Rows c) {
  product_rows(left(true, a, lda, m, k), b, add_to, c, m, n, k, alpha, beta);
}
void gemm_outer(idx m, idx n, idx k, float alpha, Rows a, Rows b, float beta, float* c, idx ldc, const NextOuter&) {
  if (m <= 0 || n <= 0) return;
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
  constexpr idx kTile = 64, kThreads = 256;
  rec().add(Kernel::outer, r, (m + kTile - 1) / kTile * ((n + kTile - 1) / kTile) * kThreads);
}

void any_gemm(bool trans_a, bool trans_b, idx m, idx n, idx k, float alpha, const float* a, idx lda, const float* b,
              idx ldb, float beta, float* c, idx ldc) {
  if (m <= 0 || n <= 0) return;
  float* from = const_cast<float*>(b);
  const Rows columns = trans_b ? Rows{from, 1, nullptr} : Rows{from, ldb, nullptr};
  product(left(trans_a, a, lda, m, k), columns, trans_b ? ldb : 1, Rows{}, Rows{c, ldc, nullptr}, m, n, k, alpha, beta);
}
void any_gemm_rows(bool trans_a, idx m, idx n, idx k, const float* a, idx lda, Rows b, Rows add_to, bool acc, Rows c) {
  product_rows(left(trans_a, a, lda, m, k), b, add_to, c, m, n, k, 1.0f, acc ? 1.0f : 0.0f);
}
void any_gemm_outer(idx m, idx n, idx k, Rows y, Rows x, float* c, idx ldc) {
  if (k > 0) gemm_outer(m, n, k, 1.0f, y, x, 1.0f, c, ldc, NextOuter{});
}

Kernels make_table() {
  fill_unary(std::make_integer_sequence<int, kMostFormulas>());
  fill_binary(std::make_integer_sequence<int, kMostFormulas>());
  Kernels t{};
  t.isa = "cuda";
  t.unary = g_unary;
  t.n_unary = static_cast<int>(g_unary_info.size());
  t.binary = g_binary;
  t.n_binary = static_cast<int>(g_binary_info.size());
#define DNL_SAME(name) t.name = name;
  // clang-format off
  DNL_SAME(fill) DNL_SAME(add) DNL_SAME(axpy) DNL_SAME(scale) DNL_SAME(scale_to) DNL_SAME(copy_rows)
  DNL_SAME(add_rows) DNL_SAME(sum_rows) DNL_SAME(scale_rows) DNL_SAME(transpose) DNL_SAME(transpose_strided)
  DNL_SAME(sum) DNL_SAME(sum_squares) DNL_SAME(dot) DNL_SAME(max) DNL_SAME(argmax) DNL_SAME(all_finite)
  DNL_SAME(logsumexp) DNL_SAME(exp_below) DNL_SAME(softmax) DNL_SAME(softmax_bwd) DNL_SAME(log_softmax)
  DNL_SAME(log_softmax_bwd) DNL_SAME(exp_shifted) DNL_SAME(layer_norm) DNL_SAME(layer_norm_bwd)
  DNL_SAME(attention_scores) DNL_SAME(attention_scores_bwd) DNL_SAME(lstm_fwd) DNL_SAME(lstm_bwd)
  DNL_SAME(gru_zr_fwd) DNL_SAME(gru_out_fwd) DNL_SAME(gru_out_bwd) DNL_SAME(gru_zr_bwd) DNL_SAME(tree_lstm_fwd)
  DNL_SAME(tree_lstm_bwd) DNL_SAME(random_uniform) DNL_SAME(random_normal) DNL_SAME(random_mask) DNL_SAME(gemm_cols)
  DNL_SAME(gemm_dots) DNL_SAME(gemm_outer)
  // clang-format on
#undef DNL_SAME
                                      t.sgd = update<device::kSgd>;
  t.momentum = update<device::kMomentum>;
  t.adagrad = update<device::kAdagrad>;
  t.adadelta = update<device::kAdadelta>;
  t.rmsprop = update<device::kRmsprop>;
  t.adam = update<device::kAdam>;
  t.amsgrad = update<device::kAmsgrad>;
  t.eg = update_eg;
  return t;
}

}  // namespace

void use(Recorder* recorder) { g_recorder = recorder; }

const Kernels& table() {
  static const Kernels made = make_table();
  return made;
}
const Products& products() {
  static const Products made = {any_gemm, any_gemm_rows, any_gemm_outer};
  return made;
}

}  // namespace dnl::cuda
