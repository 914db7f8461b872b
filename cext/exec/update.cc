#include "exec/update.h"

#include <algorithm>
#include <cmath>

#include "base/fetch.h"
#include "exec/pool.h"
#include "exec/trace.h"

namespace dnl {
namespace {

const UpdateRule kRules[] = {
    {"sgd", &Kernels::sgd, 0, true},          {"momentum", &Kernels::momentum, 1, false},
    {"adagrad", &Kernels::adagrad, 1, true},  {"adadelta", &Kernels::adadelta, 2, false},
    {"rmsprop", &Kernels::rmsprop, 1, false}, {"adam", &Kernels::adam, 2, false},
    {"amsgrad", &Kernels::amsgrad, 3, false}, {"eg", &Kernels::eg, 1, false},
};

const UpdateRule* find_rule(const std::string& name) {
  for (const UpdateRule& r : kRules)
    if (name == r.name) return &r;
  fail_value("[trainer] there is no update rule '" + name + "'");
}

Vec<float>& made(Vec<float>& state, std::size_t n) {
  if (state.size() != n) state.assign(n, 0.f);
  return state;
}

// The addresses of the state vectors of n numbers that begin at number `at` of `total`.
void point_at_state(UpdateArgs& a, int states, float* state, std::size_t total, std::size_t at) {
  a.s0 = states > 0 ? state + at : nullptr;
  a.s1 = states > 1 ? state + total + at : nullptr;
  a.s2 = states > 2 ? state + 2 * total + at : nullptr;
}

}  // namespace

Updater::Updater(const std::string& rule) : rule_(find_rule(rule)) {}

Updater::~Updater() {
  auto release = [](auto& member) {
    const GradientLock lock(member.in_use);
    member.before.release_dead();
  };
  for (Dense& d : dense_) release(*d.p);
  for (Table& t : tables_) release(*t.t);
}

void Updater::add_parameter(const std::shared_ptr<Parameter>& p) { dense_.push_back({p, {}, nullptr}); }
void Updater::add_table(const std::shared_ptr<LookupTable>& t) { tables_.push_back({t, {}, nullptr}); }

Vec<float>& Updater::parameter_state(std::size_t i) {
  return made(dense_[i].state, rule_->states * dense_[i].p->size());
}
Vec<float>& Updater::table_state(std::size_t i) { return made(tables_[i].state, rule_->states * tables_[i].t->size()); }

double Updater::gradient_norm() const {
  const Kernels& k = kernels();
  double sum = 0;
  for (const Dense& d : dense_)
    if (d.p->updated && d.p->touched) sum += k.sum_squares(static_cast<idx>(d.p->grad.size()), d.p->grad.data());
  for (const Table& t : tables_)
    if (t.t->updated) sum += k.sum_squares(static_cast<idx>(t.t->grad.size()), t.t->grad.data());
  return std::sqrt(sum);
}

void Updater::clear_gradients() {
  for (Dense& d : dense_) d.p->clear_grad();
  for (Table& t : tables_) t.t->clear_grad();
}

void Updater::restart() {
  for (Dense& d : dense_)
    if (!d.state.empty()) d.state.assign(d.state.size(), 0.f);
  for (Table& t : tables_)
    if (!t.state.empty()) t.state.assign(t.state.size(), 0.f);
}

UpdateOutcome Updater::update(UpdateStep s, double clip) {
  locks_.clear();
  for (const Dense& d : dense_) locks_.add(d.p->in_use);
  for (const Table& t : tables_) locks_.add(t.t->in_use);
  const std::lock_guard<GradientLocks> lock(locks_);
  UpdateOutcome out;
  if (clip > 0) {
    out.norm = gradient_norm();
    if (!std::isfinite(out.norm)) {
      clear_gradients();
      return out;
    }
    out.clipped = out.norm > clip;
    if (out.clipped) s.gscale = static_cast<float>(clip / out.norm);
  }
  step(s);
  return out;
}

// The work lies in one long line, member behind member, of which each thread does an equal stretch.
void Updater::step(const UpdateStep& s) {
  constexpr u64 kLeastWork = 1 << 17;  // numbers; with fewer, waking a thread takes longer
  const TraceScope trace(Phase::Update, nullptr);
  needed_ = s.keeps ? LiveRuns::of(s.owner) : Needed{};
  moment_ = needed_.any ? next_moment() : now();
  work_.clear();
  u64 all = 0;
  auto add = [&](std::size_t member, u32 units, u64 cost) {
    work_.push_back({static_cast<u32>(member), units, cost, all});
    all += units * cost;
  };
  for (std::size_t i = 0; i < dense_.size(); ++i) add(i, prepare_parameter(dense_[i], s), unit_of(*dense_[i].p));
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const u64 each = every_row(s) ? rows_of_unit(*tables_[i].t) : 2;  // touched rows lie anywhere: twice the cost
    add(dense_.size() + i, prepare_table(tables_[i], s), each * tables_[i].t->row_size);
  }
  const u64 lanes = s.threads > 1 && all >= kLeastWork ? static_cast<u64>(s.threads) : 1;
  std::size_t row = 0;
  for (const Table& t : tables_) row = every_row(s) ? std::max(row, rows_of_unit(*t.t) * t.t->row_size) : 0;
  no_grad_.assign(row * lanes, 0.f);
  run_lanes(static_cast<int>(lanes), s.threads, [&](int l) {
    const u64 lane = static_cast<u64>(l), first = all * lane / lanes, last = all * (lane + 1) / lanes;
    Pass pass{{}, every_row(s), no_grad_.data() + row * lane};
    std::memcpy(pass.args.c, s.c, sizeof s.c);
    pass.args.gscale = s.gscale;
    pass.args.wdecay = static_cast<float>(s.decay);
    for (const Work& w : work_) {
      if (!w.units) continue;  // frozen, empty, or nothing to do: a unit may cost nothing
      // A unit belongs to the thread in whose stretch it begins.
      auto unit_at = [&](u64 cost) {
        return cost <= w.begin ? 0 : std::min<u64>(w.units, (cost - w.begin + w.cost - 1) / w.cost);
      };
      const u32 from = static_cast<u32>(unit_at(first)), to = static_cast<u32>(unit_at(last));
      if (from < to) run(w, from, to, pass);
    }
  });
  for (const Work& w : work_) finish(w);
}

// Numbers that are dealt together. A multiple of what kernels take at a time, so that they meet the same instructions
// in every division; few enough to stay in the nearest cache between a copy and the rule. eg looks at all numbers at
// once.
std::size_t Updater::unit_of(const Parameter& p) const {
  constexpr std::size_t kUnit = 4096;
  return rule_->kernel == &Kernels::eg ? p.size() : kUnit;
}

// Rows that are dealt together when all are updated. Narrow ones take one call of the rule, with their gradients side
// by side; a multiple of what kernels take at a time, as above.
std::size_t Updater::rows_of_unit(const LookupTable& t) const {
  constexpr std::size_t kStep = 16, kNarrow = 64, kNumbers = 4096;
  if (t.row_size == 0 || t.row_size > kNarrow || rule_->kernel == &Kernels::eg) return 1;
  return kNumbers / (kStep * t.row_size) * kStep;
}

// How many units there are to do.
u32 Updater::prepare_parameter(Dense& d, const UpdateStep& s) {
  Parameter& p = *d.p;
  if (!p.updated) p.clear_grad();
  if (!p.updated || p.size() == 0 || (!p.touched && rule_->can_skip && s.decay == 0)) return 0;
  made(d.state, rule_->states * p.size());
  if (p.must_turn()) p.other.resize(p.size());
  d.old = p.must_turn() || p.holders == 0 ? nullptr : p.before.keep_all(s.owner, needed_, moment_, p.size());
  const std::size_t unit = unit_of(p);
  return static_cast<u32>((p.size() + unit - 1) / unit);
}

u32 Updater::prepare_table(Table& table, const UpdateStep& s) {
  LookupTable& t = *table.t;
  if (!t.updated || t.size() == 0) return 0;
  made(table.state, rule_->states * t.size());
  const bool all_rows = every_row(s);
  keep_rows(table, s, all_rows);
  // What rows owe from before is paid first; rows updated now pay this step's decay in the kernel.
  const u32 n = static_cast<u32>(all_rows ? t.rows : t.touched.size());
  for (u32 k = 0; k < n && !t.decay_of_row.empty(); ++k)
    if (const u32 r = all_rows ? k : t.touched[k]; t.owes(r)) t.pay(r);
  if (s.decay != 0) t.decay(std::log1p(-s.decay));
  const std::size_t unit = rows_of_unit(t);
  return static_cast<u32>(all_rows ? (t.rows + unit - 1) / unit : t.touched.size());
}

// Rows are copied beside the update of each, but at once where some may owe decay, which is paid before.
void Updater::keep_rows(Table& table, const UpdateStep& s, bool all_rows) {
  LookupTable& t = *table.t;
  table.old = nullptr;
  if (!needed_.any || !t.read_in_place || (!all_rows && t.touched.empty() && s.decay == 0)) return;
  table.old = all_rows ? t.before.keep_all(s.owner, needed_, moment_, t.size())
                       : t.before.keep_rows(s.owner, needed_, moment_, t.touched.data(), t.touched.size(), t.row_size);
  if (!table.old || t.decay_of_row.empty()) return;
  if (all_rows) std::memcpy(table.old, t.value.data(), t.size() * sizeof(float));
  for (std::size_t k = 0; k < t.touched.size() && !all_rows; ++k)
    std::memcpy(table.old + k * t.row_size, t.row(t.touched[k]), t.row_size * sizeof(float));
  table.old = nullptr;
}

void Updater::run(const Work& w, u32 from, u32 to, Pass& pass) {
  if (w.member >= dense_.size()) return update_rows(tables_[w.member - dense_.size()], from, to, pass);
  Dense& d = dense_[w.member];
  for (; from < to; ++from)
    update_numbers(d, from * w.cost, std::min<std::size_t>((from + 1) * w.cost, d.p->size()), pass.args);
}

void Updater::finish(const Work& w) {
  if (w.member >= dense_.size()) return tables_[w.member - dense_.size()].t->clear_grad();
  Parameter& p = *dense_[w.member].p;
  if (!w.units) return;
  if (p.must_turn()) p.turn();
  p.touched = false;
  p.grad_changed();
}

void Updater::update_numbers(Dense& d, std::size_t from, std::size_t to, UpdateArgs& args) {
  Parameter& p = *d.p;
  const bool turn = p.must_turn();
  float* w = (turn ? p.other : p.value).data() + from;
  if (turn) std::memcpy(w, p.value.data() + from, (to - from) * sizeof(float));
  if (d.old) std::memcpy(d.old + from, w, (to - from) * sizeof(float));
  args.n = static_cast<idx>(to - from);
  args.w = w;
  args.g = p.grad.data() + from;
  point_at_state(args, rule_->states, d.state.data(), p.size(), from);
  (kernels().*(rule_->kernel))(args);
}

// Are rows updated that have no gradient?
bool Updater::every_row(const UpdateStep& s) const { return !s.sparse && !rule_->can_skip; }

// A unit of narrow rows: `gradients` is zero, and is again afterwards.
void Updater::update_narrow_rows(Table& table, u32 from, u32 to, UpdateArgs& args, float* gradients) {
  LookupTable& t = *table.t;
  auto each_gradient = [&](auto f) {
    for (u32 row = from; row < to && !t.touched.empty(); ++row)
      if (const i32 slot = t.slot_of_row[row]; slot >= 0)
        f(gradients + (row - from) * t.row_size, static_cast<u32>(slot));
  };
  each_gradient([&](float* g, u32 slot) { std::memcpy(g, t.slot_grad(slot), t.row_size * sizeof(float)); });
  args.n = static_cast<idx>((to - from) * t.row_size);
  args.w = t.row(from);
  if (table.old) std::memcpy(table.old + from * t.row_size, args.w, (to - from) * t.row_size * sizeof(float));
  args.g = gradients;
  point_at_state(args, rule_->states, table.state.data(), t.size(), from * t.row_size);
  (kernels().*(rule_->kernel))(args);
  each_gradient([&](float* g, u32) { std::memset(g, 0, t.row_size * sizeof(float)); });
  for (u32 row = from; row < to && !t.decay_of_row.empty(); ++row) t.decay_of_row[row] = t.decay_now;
}

// Units from..to of the table, or of its rows that have a gradient.
void Updater::update_rows(Table& table, u32 from, u32 to, Pass& pass) {
  LookupTable& t = *table.t;
  if (const u32 unit = static_cast<u32>(rows_of_unit(t)); pass.every_row && unit > 1) {
    for (u32 k = from; k < to; ++k)
      update_narrow_rows(table, k * unit, std::min(t.rows, (k + 1) * unit), pass.args, pass.no_grad);
    return;
  }
  UpdateArgs& args = pass.args;
  const auto kernel = kernels().*(rule_->kernel);
  constexpr u32 kAhead = 2;
  args.n = static_cast<idx>(t.row_size);
  for (u32 k = from; k < to; ++k) {
    if (!pass.every_row && k + kAhead < to) fetch_row(table, t.touched[k + kAhead]);
    const u32 row = pass.every_row ? k : t.touched[k];
    const i32 slot = pass.every_row ? t.slot_of_row[row] : static_cast<i32>(k);
    args.w = t.row(row);
    if (table.old) std::memcpy(table.old + k * t.row_size, args.w, t.row_size * sizeof(float));
    args.g = slot >= 0 ? t.slot_grad(static_cast<u32>(slot)) : pass.no_grad;
    point_at_state(args, rule_->states, table.state.data(), t.size(), row * t.row_size);
    kernel(args);
    if (!t.decay_of_row.empty()) t.decay_of_row[row] = t.decay_now;
  }
}

// Asks for a row and its state, which lie anywhere in tables of many megabytes.
void Updater::fetch_row(const Table& table, u32 row) const {
  const LookupTable& t = *table.t;
  const std::size_t at = row * t.row_size;
  for (std::size_t i = 0; i < t.row_size; i += 16) {
    DNL_FETCH_TO_WRITE(t.value.data() + at + i);
    for (int s = 0; s < rule_->states; ++s) DNL_FETCH_TO_WRITE(table.state.data() + s * t.size() + at + i);
  }
}

}  // namespace dnl
