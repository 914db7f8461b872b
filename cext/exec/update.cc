#include "exec/update.h"

#include <algorithm>
#include <cmath>

#include "exec/pool.h"
#include "exec/trace.h"

namespace dnl {
namespace {

constexpr float kComing = -1;

Store& made(Store& state, std::size_t n) {
  if (state.size() != n) state.assign_zeros(n);
  return state;
}

}  // namespace

Updater::Updater(const std::string& rule) : rule_(&update_rule(rule)) {}

Updater::~Updater() {
  try {
    late();  // nothing must come any more
  } catch (...) {}
  auto release = [](auto& member) {
    const GradientLock lock(member.in_use);
    member.before.release_dead();
  };
  for (Dense& d : dense_) release(*d.p);
  for (Table& t : tables_) release(*t.t);
}

void Updater::add_parameter(const std::shared_ptr<Parameter>& p) { dense_.push_back({p, {}, nullptr, false}); }
void Updater::add_table(const std::shared_ptr<LookupTable>& t) { tables_.push_back({t, {}, nullptr}); }

Store& Updater::parameter_state(std::size_t i) { return made(dense_[i].state, rule_->states * dense_[i].p->size()); }
Store& Updater::table_state(std::size_t i) { return made(tables_[i].state, rule_->states * tables_[i].t->size()); }

void Updater::list_gradients() {
  gradients_.clear();
  outer_squares_ = 0;
  for (const Dense& d : dense_) {
    if (!d.p->updated || !d.p->touched) continue;
    if (const OuterLater* outer = d.p->grad.outer())
      outer_squares_ += outer->sum_squares();
    else
      gradients_.push_back({d.p->grad.read(*backend_), d.p->grad.size()});
  }
  for (const Table& t : tables_)
    if (t.t->updated) gradients_.push_back({t.t->gradients(*backend_), t.t->grad.size()});
}

double Updater::gradient_norm() {
  return std::sqrt(outer_squares_ + backend_->sum_squares(gradients_.size(), gradients_.data()));
}

void Updater::clear_gradients() {
  for (Dense& d : dense_) d.p->clear_grad();
  for (Table& t : tables_) t.t->clear_grad();
}

void Updater::restart() {
  for (Dense& d : dense_) d.state.zero();
  for (Table& t : tables_) t.state.zero();
}

// The factor is reckoned where the gradients are. What it was is told afterwards, when it costs no wait.
bool Updater::clips_without_wait(double clip) {
  if (rule_->whole) return false;
  made(clip_, 2);
  if (!backend_->clip_factor(gradients_.size(), gradients_.data(), clip, clip_.overwrite(*backend_))) return false;
  clipper_ = backend_;
  late_[0] = kComing;
  backend_->download_later(2, clip_.read(*backend_), late_);
  return true;
}

UpdateOutcome Updater::late() {
  UpdateOutcome out;
  if (!clipper_) return out;
  if (late_[0] == kComing) clipper_->download(2, clip_.read(*clipper_), late_);
  clipper_ = nullptr;
  out.norm = static_cast<double>(late_[1]);
  out.clipped = late_[0] < 1;
  return out;
}

UpdateOutcome Updater::update(const UpdateStep& s, double clip) {
  late();
  std::unique_lock<GradientLocks> lock(locks_, std::defer_lock);
  if (!s.alone) {
    locks_.clear();
    for (const Dense& d : dense_) locks_.add(d.p->in_use);
    for (const Table& t : tables_) locks_.add(t.t->in_use);
    lock.lock();
  }
  backend_ = s.backend;
  for (const Dense& d : dense_)
    if (d.p->grad.outer() && !may_be_outer(s)) d.p->grad.read(*backend_);
  UpdateOutcome out;
  float gscale = 1;
  const float* factor = nullptr;
  if (clip > 0) list_gradients();
  if (clip > 0 && clips_without_wait(clip)) {
    factor = clip_.read(*backend_);
  } else if (clip > 0) {
    out.norm = gradient_norm();
    if (!std::isfinite(out.norm)) {
      clear_gradients();
      return out;
    }
    out.clipped = out.norm > clip;
    if (out.clipped) gscale = static_cast<float>(clip / out.norm);
  }
  step(s, gscale, factor);
  return out;
}

void Updater::step(const UpdateStep& s, float gscale, const float* factor) {
  const TraceScope trace(Phase::Update, nullptr);
  needed_ = s.keeps ? LiveRuns::of(s.owner) : Needed{};
  moment_ = needed_.any ? next_moment() : now();
  for (Dense& d : dense_) d.old = nullptr;
  for (Table& t : tables_) t.old = nullptr;
  u64 lanes;
  try {
    lanes = prepare(s);
  } catch (...) {
    keep_unchanged(s);
    throw;
  }
  for (const Table& table : tables_) {
    LookupTable& t = *table.t;
    if (s.decay != 0 && t.updated && t.size()) t.decay(std::log1p(-s.decay));
  }
  UpdateSetting setting;
  std::memcpy(setting.c, s.c, sizeof s.c);
  setting.gscale = gscale;
  setting.factor = factor;
  setting.wdecay = static_cast<float>(s.decay);
  run_lanes(static_cast<int>(lanes), s.threads, [&](int l) {
    const std::size_t from = begin_[static_cast<std::size_t>(l)], to = begin_[static_cast<std::size_t>(l) + 1];
    if (from < to) backend_->update(*rule_, setting, to - from, tensors_.data() + from);
  });
  for (const Work& w : work_) finish(w, every_row(s));
}

// All that may fail for want of memory, before any number changes. The work lies in one long line, member behind
// member, of which each thread does an equal stretch: so many threads.
u64 Updater::prepare(const UpdateStep& s) {
  constexpr u64 kLeastWork = 1 << 17;  // numbers; with fewer, waking a thread takes longer
  work_.clear();
  u64 all = 0;
  auto add = [&](std::size_t member, u32 units, u64 cost) {
    work_.push_back({static_cast<u32>(member), units, cost, all});
    all += units * cost;
  };
  for (std::size_t i = 0; i < dense_.size(); ++i) add(i, prepare_parameter(dense_[i], s), unit_of(*dense_[i].p));
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const u64 each =
        every_row(s) ? rows_of_unit(*rule_, tables_[i].t->row_size) : 2;  // touched rows lie anywhere: twice the cost
    add(dense_.size() + i, prepare_table(tables_[i], s), each * tables_[i].t->row_size);
  }
  const u64 lanes = s.threads > 1 && all >= kLeastWork ? static_cast<u64>(s.threads) : 1;
  tensors_.clear();
  begin_.clear();
  for (u64 l = 0; l < lanes; ++l) {
    begin_.push_back(tensors_.size());
    deal(all * l / lanes, all * (l + 1) / lanes, every_row(s));
  }
  begin_.push_back(tensors_.size());
  return lanes;
}

// No number changes after all: what is kept of those of before are those that there are.
void Updater::keep_unchanged(const UpdateStep& s) {
  for (Dense& d : dense_)
    if (d.old)
      backend_->copy_rows(1, d.p->size(), Rows{d.p->value.read(*backend_), 0, nullptr}, Rows{d.old, 0, nullptr});
  for (Table& t : tables_)
    if (t.old) copy_old(t, every_row(s));
}

void Updater::deal(u64 first, u64 last, bool all_rows) {
  for (const Work& w : work_) {
    if (!w.units) continue;  // frozen, empty, or nothing to do: a unit may cost nothing
    // A unit belongs to the thread in whose stretch it begins.
    auto unit_at = [&](u64 cost) -> u64 {
      if (cost <= w.begin) return 0;
      if (cost - w.begin >= w.units * w.cost) return w.units;
      return (cost - w.begin + w.cost - 1) / w.cost;
    };
    const std::size_t from = unit_at(first), to = unit_at(last);
    if (from >= to) continue;
    UpdateTensor& t = *tensors_.extend(1);
    t = UpdateTensor{};
    if (w.member < dense_.size())
      numbers(t, dense_[w.member], from * w.cost, to * w.cost);
    else
      rows(t, tables_[w.member - dense_.size()], from, to, all_rows);
  }
}

// Gradients that are outer products are used as they are by one thread, with rules that look at each number by itself.
bool Updater::may_be_outer(const UpdateStep& s) const {
  return s.threads == 1 && !rule_->whole && backend_ == &host_backend();
}

// How many units there are to do.
u32 Updater::prepare_parameter(Dense& d, const UpdateStep& s) {
  Parameter& p = *d.p;
  if (!p.updated) p.clear_grad();
  if (!p.updated || p.size() == 0 || (!p.touched && rule_->can_skip && s.decay == 0)) return 0;
  made(d.state, rule_->states * p.size());
  d.turn = p.must_turn();
  if (d.turn) {
    p.make_other();
    p.other().overwrite(*backend_);
  }
  d.old = d.turn || !p.is_read() ? nullptr : p.before.keep_all(*backend_, s.owner, needed_, moment_, p.size());
  return rule_->whole ? 1 : static_cast<u32>((p.size() + kUpdateUnit - 1) / kUpdateUnit);
}

u32 Updater::prepare_table(Table& table, const UpdateStep& s) {
  LookupTable& t = *table.t;
  if (!t.updated || t.size() == 0) return 0;
  made(table.state, rule_->states * t.size());
  const bool all_rows = every_row(s);
  keep_rows(table, s, all_rows);
  t.take_back(*backend_);
  // What rows owe from before is paid first; rows updated now pay this step's decay in the kernel.
  const u32 n = static_cast<u32>(all_rows ? t.rows : t.touched.size());
  t.pay(*backend_, all_rows ? nullptr : t.touched.data(), n, false, false);
  if (s.decay != 0) t.decay(0);  // room to note it
  const std::size_t unit = rows_of_unit(*rule_, t.row_size);
  return static_cast<u32>(all_rows ? (t.rows + unit - 1) / unit : t.touched.size());
}

// Rows are copied beside the update of each, but at once where some may owe decay, which is paid before.
void Updater::keep_rows(Table& table, const UpdateStep& s, bool all_rows) {
  LookupTable& t = *table.t;
  table.old = nullptr;
  if (!needed_.any || !t.read_in_place || (!all_rows && t.touched.empty() && s.decay == 0 && !t.paid())) return;
  table.old = all_rows ? t.before.keep_all(*backend_, s.owner, needed_, moment_, t.size())
                       : t.before.keep_rows(*backend_, s.owner, needed_, moment_, t.touched.data(), t.touched.size(),
                                            t.row_size);
  if (table.old && !t.decay_of_row.empty()) copy_old(table, all_rows);
}

// At once, not beside the update.
void Updater::copy_old(Table& table, bool all_rows) {
  LookupTable& t = *table.t;
  rows_.clear();
  for (u32 row : t.touched) rows_.push_back(t.row(*backend_, row));
  const Rows to{table.old, static_cast<std::ptrdiff_t>(t.row_size), nullptr};
  if (float* from = t.value.read(*backend_); all_rows)
    backend_->copy_rows(1, t.size(), Rows{from, 0, nullptr}, to);
  else if (!rows_.empty())
    backend_->copy_rows(rows_.size(), t.row_size, Rows{nullptr, 0, rows_.data()}, to);
  table.old = nullptr;
}

void Updater::finish(const Work& w, bool all_rows) {
  if (w.member < dense_.size()) {
    Parameter& p = *dense_[w.member].p;
    if (!w.units) return;
    if (dense_[w.member].turn) p.turn();
    p.grad.drop_outer();
    p.touched = false;
    p.grad_changed();
    return;
  }
  LookupTable& t = *tables_[w.member - dense_.size()].t;
  t.changes += w.units != 0;
  if (w.units && !t.decay_of_row.empty()) {  // rows that were updated have paid
    if (all_rows) t.decay_of_row.assign(t.rows, t.decay_now);
    for (u32 row : t.touched) t.decay_of_row[row] = t.decay_now;
  }
  t.clear_grad();
}

// Of a parameter.
void Updater::numbers(UpdateTensor& t, Dense& d, std::size_t from, std::size_t to) {
  Parameter& p = *d.p;
  t.rows = 1;
  t.n = std::min(to, p.size()) - from;
  t.w = (d.turn ? p.other().overwrite(*backend_) : p.value.write(*backend_)) + from;
  t.from = d.turn ? p.value.read(*backend_) + from : nullptr;
  t.outer = p.grad.outer();
  t.g = t.outer ? nullptr : p.grad.write(*backend_) + from;
  t.old = d.old ? d.old + from : nullptr;
  point_at_state(t, d.state, p.size(), from);
}

// Units of a table's rows, or of those that have a gradient.
void Updater::rows(UpdateTensor& u, Table& table, std::size_t from, std::size_t to, bool all_rows) {
  LookupTable& t = *table.t;
  const std::size_t unit = all_rows ? rows_of_unit(*rule_, t.row_size) : 1, first = from * unit;
  u.n = t.row_size;
  u.rows = std::min<std::size_t>(to * unit, all_rows ? t.rows : t.touched.size()) - first;
  if (all_rows)
    u.slot = t.slot_of_row.data() + first;
  else
    u.row = t.touched.data() + first;
  const std::size_t at = all_rows ? first * t.row_size : 0;
  u.w = t.value.write(*backend_) + at;
  u.g = t.gradients(*backend_) + (all_rows ? 0 : first * t.row_size);
  u.old = table.old ? table.old + first * t.row_size : nullptr;
  point_at_state(u, table.state, t.size(), at);
}

// The state vectors of numbers that begin at number `at` of `total`.
void Updater::point_at_state(UpdateTensor& t, Store& state, std::size_t total, std::size_t at) const {
  if (!rule_->states) return;
  float* const first = state.write(*backend_) + at;
  for (int k = 0; k < rule_->states; ++k) t.s[k] = first + static_cast<std::size_t>(k) * total;
}

}  // namespace dnl
