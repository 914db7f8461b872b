#include "exec/update.h"

#include <algorithm>
#include <cmath>

#include "base/fetch.h"
#include "exec/pool.h"
#include "exec/trace.h"

namespace dnl {
namespace {

const UpdateRule kRules[] = {
    {"sgd", &Kernels::sgd, 0, true},           {"momentum", &Kernels::momentum, 1, false},
    {"adagrad", &Kernels::adagrad, 1, true},   {"adadelta", &Kernels::adadelta, 2, false},
    {"rmsprop", &Kernels::rmsprop, 1, false},  {"adam", &Kernels::adam, 2, false},
    {"amsgrad", &Kernels::amsgrad, 3, false},  {"eg", &Kernels::eg, 1, false},
};

const UpdateRule* find_rule(const std::string& name) {
  for (const UpdateRule& r : kRules)
    if (name == r.name) return &r;
  fail_value("[trainer] there is no update rule '" + name + "'");
}

constexpr int kMostThreads = 16;

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

void Updater::add_parameter(const std::shared_ptr<Parameter>& p) { dense_.push_back({p, {}}); }
void Updater::add_table(const std::shared_ptr<LookupTable>& t) { tables_.push_back({t, {}}); }

Vec<float>& Updater::parameter_state(std::size_t i) {
  return made(dense_[i].state, rule_->states * dense_[i].p->size());
}
Vec<float>& Updater::table_state(std::size_t i) { return made(tables_[i].state, rule_->states * tables_[i].t->size()); }

double Updater::gradient_norm() const {
  const Kernels& k = kernels();
  double sum = 0;
  for (const Dense& d : dense_) {
    const GradientLock lock(d.p->in_use);
    if (d.p->updated && d.p->touched) sum += k.sum_squares(static_cast<idx>(d.p->grad.size()), d.p->grad.data());
  }
  for (const Table& t : tables_) {
    const GradientLock lock(t.t->in_use);
    if (t.t->updated) sum += k.sum_squares(static_cast<idx>(t.t->grad.size()), t.t->grad.data());
  }
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

void Updater::step(const UpdateStep& s) {
  const TraceScope trace(Phase::Update, nullptr);
  const int lanes = deal(s);
  run_lanes(lanes, lanes, [&](int lane) { step_lane(s, static_cast<u8>(lane)); });
}

// Which thread does which members, the largest first to who has least; how many threads. Members do not touch each other, so
// that this makes no difference to the numbers.
int Updater::deal(const UpdateStep& s) {
  constexpr u64 kLeastWork = 1 << 17;  // floats; with fewer, waking a thread takes longer
  const std::size_t dense = dense_.size(), members = dense + tables_.size();
  lane_of_.assign(members, 0);
  const bool all_rows = every_row(s);
  for (const Table& table : tables_)
    if (all_rows && no_grad_.size() < table.t->row_size) no_grad_.assign(table.t->row_size, 0.f);
  const int lanes = std::min(s.threads, kMostThreads);
  if (lanes < 2) return 1;
  const bool skips = rule_->can_skip && s.decay == 0;
  u64 all = 0;
  by_cost_.clear();
  for (std::size_t i = 0; i < members; ++i) {
    u64 cost;
    if (i < dense) {
      Parameter& p = *dense_[i].p;
      const GradientLock lock(p.in_use);
      cost = !p.updated || (skips && !p.touched) ? 0 : p.size();
    } else {
      LookupTable& t = *tables_[i - dense].t;
      const GradientLock lock(t.in_use);
      cost = !t.updated ? 0 : all_rows ? t.size() : 2 * t.row_size * t.touched.size();  // rows lie anywhere
    }
    all += cost;
    by_cost_.push_back({cost, static_cast<u32>(i)});
  }
  if (all < kLeastWork) return 1;
  std::sort(by_cost_.begin(), by_cost_.end(), [](const Cost& a, const Cost& b) { return a.cost > b.cost; });
  u64 load[kMostThreads] = {0};
  for (const Cost& c : by_cost_) {
    u64* least = std::min_element(load, load + lanes);
    *least += c.cost;
    lane_of_[c.member] = static_cast<u8>(least - load);
  }
  return lanes;
}

void Updater::step_lane(const UpdateStep& s, u8 lane) {
  UpdateArgs args{};
  std::memcpy(args.c, s.c, sizeof s.c);
  args.gscale = s.gscale;
  args.wdecay = static_cast<float>(s.decay);
  for (std::size_t i = 0; i < dense_.size(); ++i)
    if (lane_of_[i] == lane) step_parameter(i, s, args);
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (lane_of_[dense_.size() + i] != lane) continue;
    const GradientLock lock(tables_[i].t->in_use);
    if (tables_[i].t->updated) {
      table_state(i);
      step_table(tables_[i], s, args);
    }
    tables_[i].t->clear_grad();
  }
}

void Updater::step_parameter(std::size_t i, const UpdateStep& s, UpdateArgs& args) {
  Parameter& p = *dense_[i].p;
  const GradientLock lock(p.in_use);
  if (!p.updated) return p.clear_grad();
  if (!p.touched && rule_->can_skip && s.decay == 0) return;
  const auto kernel = kernels().*(rule_->kernel);
  float* state = parameter_state(i).data();
  const bool turn = p.must_turn();
  if (turn) p.other.resize(p.size());
  float* w = (turn ? p.other : p.value).data();
  // In pieces that stay in the nearest cache between the copy and the rule; eg looks at all numbers at once.
  const std::size_t piece = turn && rule_->kernel != &Kernels::eg ? 4096 : p.size();
  for (std::size_t at = 0; at < p.size(); at += piece) {
    const std::size_t n = std::min(piece, p.size() - at);
    if (turn) std::memcpy(w + at, p.value.data() + at, n * sizeof(float));
    args.n = static_cast<idx>(n);
    args.w = w + at;
    args.g = p.grad.data() + at;
    point_at_state(args, rule_->states, state, p.size(), at);
    kernel(args);
  }
  if (turn) p.turn();
  p.touched = false;
}

// Are rows updated that have no gradient?
bool Updater::every_row(const UpdateStep& s) const { return !s.sparse && !rule_->can_skip; }

void Updater::step_table(Table& table, const UpdateStep& s, UpdateArgs& args) {
  LookupTable& t = *table.t;
  const bool all_rows = every_row(s);
  args.n = static_cast<idx>(t.row_size);
  // What rows owe from before is paid first; rows updated now pay this step's decay in the kernel.
  if (!t.decay_of_row.empty()) {
    if (all_rows) t.settle_all();
    else for (u32 r : t.touched) t.settle(r);
  }
  if (s.decay != 0) t.decay(std::log1p(-s.decay));
  if (all_rows) {
    for (u32 r = 0; r < t.rows; ++r) {
      const i32 slot = t.slot_of_row[r];
      update_row(table, r, slot >= 0 ? t.slot_grad(static_cast<u32>(slot)) : no_grad_.data(), args);
    }
  } else {
    constexpr u32 kAhead = 2;
    for (u32 k = 0; k < t.touched.size(); ++k) {
      if (k + kAhead < t.touched.size()) fetch_row(table, t.touched[k + kAhead]);
      update_row(table, t.touched[k], t.slot_grad(k), args);
    }
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

void Updater::update_row(Table& table, u32 row, float* grad, UpdateArgs& args) {
  LookupTable& t = *table.t;
  args.w = t.row(row);
  args.g = grad;
  point_at_state(args, rule_->states, table.state.data(), t.size(), row * t.row_size);
  (kernels().*(rule_->kernel))(args);
  if (!t.decay_of_row.empty()) t.decay_of_row[row] = t.decay_now;
}

}  // namespace dnl
