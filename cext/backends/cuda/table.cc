#include "backends/cuda/table.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/added.h"
#include "backends/cuda/cell_parts.h"
#include "backends/cuda/products.h"
#include "backends/cuda/update.h"

namespace dnl::cuda {
namespace {

Recorder& rec() { return recorder(); }

// ---- moving and adding ---------------------------------------------------------------------------------------------

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
  rec().add(Kernel::sum_rows, device::SumRows{source, rec().writes(y, n), k, n, acc}, n * 32);
}
void scale_rows(idx k, idx n, Rows x, const float* a, float* y, idx step, float* sums) {
  if (k * n <= 0) return;
  const device::Rows source = rec().reads(x, k, n);
  const u64 factors = rec().reads(a, k);
  const Rows rows{y, step, nullptr};
  rec().writes(rows, k, n);
  rec().add(Kernel::scale_rows, device::ScaleRows{source, factors, address(y), k, n, step}, k * n);
  if (sums) sum_rows(k, n, rows, sums, true);
}
void transpose_strided(idx k, idx n, const float* x, idx from_step, float* y, idx to_step, bool acc) {
  if (k * n <= 0) return;
  const u64 from = rec().reads(x, (k - 1) * from_step + n), to = rec().writes(y, (n - 1) * to_step + k);
  rec().add(Kernel::transpose, device::Transpose{from, to, k, n, from_step, to_step, acc}, k * n);
}
void transpose(idx m, idx n, const float* x, float* y, bool acc) { transpose_strided(n, m, x, m, y, n, acc); }

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

void add_reduction(device::Reduction what, idx n, const float* x, const float* y, u64 to) {
  device::Reduce r{};
  r.to = rec().writes_bytes(to, sizeof(double));
  r.x = rec().reads(x, n);
  r.y = rec().reads(y, n);
  r.n = n;
  r.what = what;
  rec().add(Kernel::reduce, r, 1);
}
double reduce_one(device::Reduction what, idx n, const float* x, const float* y = nullptr) {
  double out = 0;
  const u64 to = rec().stage(&out, sizeof out);
  add_reduction(what, n, x, y, to);
  rec().download(&out, to, sizeof out);
  return out;
}
float sum(idx n, const float* x) { return static_cast<float>(reduce_one(device::kSum, n, x)); }
double sum_squares(idx n, const float* x) { return reduce_one(device::kSumSquares, n, x); }
float dot(idx n, const float* x, const float* y) { return static_cast<float>(reduce_one(device::kDot, n, x, y)); }
float max(idx n, const float* x) { return static_cast<float>(reduce_one(device::kMax, n, x)); }
idx argmax(idx n, const float* x) { return static_cast<idx>(reduce_one(device::kArgmax, n, x)); }
bool all_finite(idx n, const float* x) { return reduce_one(device::kFinite, n, x) == 0; }
float logsumexp(idx n, const float* x) { return static_cast<float>(reduce_one(device::kLogSumExp, n, x)); }

void exp_below(idx n, const float* x, float* y, float* largest, double* total) {
  double state[2] = {*largest, *total};
  const u64 at = rec().writes_bytes(rec().stage(state, sizeof state), sizeof state);
  const u64 from = rec().reads(x, n);
  rec().add(Kernel::exp_below, device::ExpBelow{from, rec().writes(y, n), at, n}, 1);
  rec().download(state, at, sizeof state);
  *largest = static_cast<float>(state[0]);
  *total = state[1];
}
// n contiguous numbers as one line.
device::Lines one_line(idx n) {
  device::Lines r{};
  r.members = r.lines = r.inner = 1;
  r.n = n;
  return r;
}
device::Rows one_row(u64 at) { return {at, 0, 0}; }
void softmax_of(idx n, const float* x, float* y, bool logarithm) {
  if (n <= 0) return;
  device::Lines r = one_line(n);
  r.x = one_row(rec().reads(x, n));
  r.y = one_row(rec().writes(y, n));
  r.what = logarithm;
  rec().add(Kernel::softmax, r, 1);
}
void softmax(idx n, const float* x, float* y) { softmax_of(n, x, y, false); }
void log_softmax(idx n, const float* x, float* y) { softmax_of(n, x, y, true); }
void softmax_back(idx n, const float* y, const float* dy, float* dx, bool logarithm, bool acc) {
  if (n <= 0) return;
  device::Lines r = one_line(n);
  r.y = one_row(rec().reads(y, n));
  r.dy = one_row(rec().reads(dy, n));
  r.dx = one_row(rec().writes(dx, n));
  r.what = logarithm;
  r.acc = acc;
  rec().add(Kernel::softmax_back, r, 1);
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
  device::LayerNorm r{};
  r.x = one_row(rec().reads(x, n));
  r.g = one_row(rec().reads(g, n));
  r.b = one_row(rec().reads(b, n));
  r.y = one_row(rec().writes(y, n));
  r.stats = one_row(rec().writes(stats, 2));
  r.members = r.batch = 1;
  r.n = r.n_g = r.n_b = n;
  rec().add(Kernel::layer_norm, r, 1);
}
void layer_norm_weight(idx n, const float* x, const float* stats, const float* dy, float* to, bool gain) {
  device::LayerNormWeight r{};
  r.x = one_row(rec().reads(x, n));
  r.stats = one_row(rec().reads(stats, 2));
  r.dy = one_row(rec().reads(dy, n));
  r.to = one_row(rec().writes(to, n));
  r.members = r.batch = r.own = 1;
  r.n = r.size = n;
  r.gain = gain;
  rec().add(Kernel::layer_norm_weight, r, n * 128);
}
void layer_norm_bwd(idx n, const float* x, const float* g, const float* stats, const float* dy, float* dx, bool acc,
                    float* dg, float* db) {
  if (n <= 0) return;
  if (dg) layer_norm_weight(n, x, stats, dy, dg, true);
  if (db) layer_norm_weight(n, x, stats, dy, db, false);
  if (!dx) return;
  device::LayerNormBack r{};
  r.x = one_row(rec().reads(x, n));
  r.g = one_row(rec().reads(g, n));
  r.stats = one_row(rec().reads(stats, 2));
  r.dy = one_row(rec().reads(dy, n));
  r.dx = one_row(rec().writes(dx, n));
  r.members = r.batch = 1;
  r.n = r.n_g = n;
  r.acc = acc;
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

void lstm_bwd(idx k, idx h, Rows gates, Rows c_prev, Rows c, Rows dh, Rows dc, Rows da, bool acc_a, Rows dc_prev,
              bool acc_c) {
  if (k * h <= 0) return;
  const Added sums(k, 4 * h, da, acc_a), to(k, h, dc_prev, acc_c);
  device::LstmBack r{};
  r.gates = rec().reads(gates, k, 4 * h);
  r.c_prev = rec().reads(c_prev, k, h);
  r.c = rec().reads(c, k, h);
  r.dh = rec().reads(dh, k, h);
  r.dc = rec().reads(dc, k, h);
  r.da = rec().writes(sums.rows, k, 4 * h);
  r.dc_prev = rec().writes(to.rows, k, h);
  r.k = k;
  r.h = h;
  r.acc_a = sums.adds;
  r.acc_c = to.adds;
  rec().add(Kernel::lstm_back, r, k * h);
  sums.done();
  to.done();
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
  const Added to(k, h, dh_prev, acc);
  device::GruOutBack r{};
  r.zr = rec().reads(zr, k, 2 * h);
  r.h_prev = rec().reads(h_prev, k, h);
  r.cand = rec().reads(cand, k, h);
  r.dh = rec().reads(dh, k, h);
  r.dcand = rec().writes(dcand, k, h);
  r.dzr = rec().writes(dzr, k, 2 * h);
  r.dh_prev = rec().writes(to.rows, k, h);
  r.k = k;
  r.h = h;
  r.acc = to.adds;
  rec().add(Kernel::gru_out_back, r, k * h);
  to.done();
}
void gru_zr_bwd(idx k, idx h, Rows zr, Rows h_prev, Rows drh, Rows dzr, Rows dh_prev) {
  if (k * h <= 0) return;
  const Added to(k, h, dh_prev, true);
  if (to.rows.wanted() && !to.adds) fill_rows(k, h, 0.0f, to.rows);  // the kernel adds
  device::GruZrBack r{};
  r.zr = rec().reads(zr, k, 2 * h);
  r.h_prev = rec().reads(h_prev, k, h);
  r.drh = rec().reads(drh, k, h);
  r.dzr = rec().writes(dzr, k, 2 * h);
  r.dh_prev = rec().writes(to.rows, k, h);
  r.k = k;
  r.h = h;
  rec().add(Kernel::gru_zr_back, r, k * h);
  to.done();
}
// What k rows of several lists take of the room for what is staged: a record's are asked for together.
std::size_t bytes_of_lists(const Rows* rows, int count, idx k) {
  std::size_t bytes = static_cast<std::size_t>(count + 1) * (sizeof(device::Rows) + sizeof(std::int32_t));
  for (int i = 0; i < count; ++i)
    if (rows[i].ptr) bytes += static_cast<std::size_t>(k + 2) * sizeof(u64);
  return bytes;
}
u64 stage_lists(const Rows* rows, int count, bool written, idx k, idx h) {
  Vec<device::Rows> all;
  for (int i = 0; i < count; ++i) all.push_back(written ? rec().writes(rows[i], k, h) : rec().reads(rows[i], k, h));
  return count ? rec().stage(all.data(), all.size() * sizeof(device::Rows)) : 0;
}
void tree_lstm_fwd(idx k, idx h, int n_children, Rows iog, const Rows* f, const Rows* c_child, float forget_bias,
                   Rows c, Rows h_out) {
  if (k * h <= 0) return;
  const Rows own[] = {iog, c, h_out};
  rec().make_room(bytes_of_lists(own, 3, k) + bytes_of_lists(f, n_children, k) +
                  bytes_of_lists(c_child, n_children, k));
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
  const Rows own[] = {iog, c, dh, dc, diog};
  std::size_t room = bytes_of_lists(own, 5, k);
  for (const Rows* lists : {f, c_child, df, dc_child}) room += bytes_of_lists(lists, n_children, k);
  rec().make_room(room);
  device::TreeLstmBack r{};
  r.iog = rec().reads(iog, k, 3 * h);
  r.c = rec().reads(c, k, h);
  r.dh = rec().reads(dh, k, h);
  r.dc = rec().reads(dc, k, h);
  r.diog = rec().writes(diog, k, 3 * h);
  r.f = stage_lists(f, n_children, false, k, h);
  r.c_child = stage_lists(c_child, n_children, false, k, h);
  r.df = stage_lists(df, n_children, true, k, h);
  // A child of several parents, or twice of one, has one gradient.
  Vec<float*> all;
  for (int i = 0; i < n_children; ++i)
    for (idx m = 0; m < k && dc_child[i].wanted(); ++m) all.push_back(dc_child[i][m]);
  const bool aside = !Targets(static_cast<idx>(all.size()), h, Rows{nullptr, 0, all.data()}).apart;
  Vec<Added> to;
  Vec<Rows> rows;
  Vec<std::int32_t> acc;
  for (int i = 0; i < n_children; ++i) {
    to.push_back(Added(k, h, dc_child[i], acc_child[i], aside));
    rows.push_back(to.back().rows);
    acc.push_back(to.back().adds);
  }
  r.dc_child = stage_lists(rows.data(), n_children, true, k, h);
  r.acc_child = n_children ? rec().stage(acc.data(), acc.size() * sizeof(std::int32_t)) : 0;
  r.k = k;
  r.h = h;
  r.n_children = n_children;
  rec().add(Kernel::tree_lstm_back, r, k * h);
  for (const Added& each : to) each.done();
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

template <Rule Which>
void update_numbers(const UpdateArgs& u) {
  UpdateTensor t{1, static_cast<std::size_t>(u.n), u.w, u.g, {u.s0, u.s1, u.s2}};
  UpdateSetting setting{{}, u.gscale, nullptr, u.wdecay};
  std::copy(u.c, u.c + 6, setting.c);
  update(rec(), Which, setting, t);
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
  DNL_SAME(lstm_gates) DNL_SAME(lstm_gates_bwd) DNL_SAME(lstm_cell) DNL_SAME(lstm_cell_bwd)
  DNL_SAME(lstm_output) DNL_SAME(lstm_output_bwd) DNL_SAME(gru_start) DNL_SAME(gru_start_bwd)
  DNL_SAME(coupled_cell) DNL_SAME(coupled_output) DNL_SAME(coupled_output_bwd) DNL_SAME(coupled_cell_bwd)
  // clang-format on
#undef DNL_SAME
                                                      t.sgd = update_numbers<Rule::Sgd>;
  t.momentum = update_numbers<Rule::Momentum>;
  t.adagrad = update_numbers<Rule::Adagrad>;
  t.adadelta = update_numbers<Rule::Adadelta>;
  t.rmsprop = update_numbers<Rule::RmsProp>;
  t.adam = update_numbers<Rule::Adam>;
  t.amsgrad = update_numbers<Rule::Amsgrad>;
  t.eg = update_numbers<Rule::Eg>;
  return t;
}

}  // namespace

const FormulaInfo& formula_info(bool binary, int id) {
  return (binary ? g_binary_info : g_unary_info)[static_cast<std::size_t>(id)];
}
bool rows_apart(idx k, idx n, const Rows& rows) { return Targets(k, n, rows).apart; }

void fill_rows(idx k, idx n, float v, const Rows& y) {
  if (k * n > 0) rec().add(Kernel::fill, device::Fill{rec().writes(y, k, n), k, n, v}, k * n);
}
// Where the GPU puts them, one double an array.
u64 reductions(device::Reduction what, std::size_t k, const Numbers* arrays) {
  Vec<double> zeros;
  zeros.assign(k, 0.0);
  const u64 to = rec().stage(zeros.data(), k * sizeof(double));
  for (std::size_t i = 0; i < k; ++i)
    add_reduction(what, static_cast<idx>(arrays[i].n), arrays[i].at, nullptr, to + i * sizeof(double));
  return to;
}
Vec<double> reduce(device::Reduction what, std::size_t k, const Numbers* arrays) {
  Vec<double> out;
  out.assign(k, 0.0);
  if (k > 0) rec().download(out.data(), reductions(what, k, arrays), k * sizeof(double));
  return out;
}
void clip_factor(std::size_t k, const Numbers* arrays, double most, float* to) {
  device::Clip r{};
  r.sums = k > 0 ? reductions(device::kSumSquares, k, arrays) : 0;
  if (k > 0) rec().writes_bytes(r.sums, k * sizeof(double));
  r.to = rec().writes(to, 2);
  r.k = static_cast<idx>(k);
  r.most = most;
  rec().add(Kernel::clip, r, 1);
}

const Kernels& table() {
  static const Kernels made = make_table();
  return made;
}

}  // namespace dnl::cuda
