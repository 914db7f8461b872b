// Running a plan backward: groups in reverse.
//
// A gradient's memory is not cleared beforehand: its state says whether anything was written. A call whose targets are
// all fresh and distinct assigns; all old, adds; a mixture clears the fresh ones first and adds, or, if few are old or
// occur twice, assigns, those to memory at hand that is added later.
#include <algorithm>

#include "exec/frame.h"
#include "exec/runner.h"
#include "exec/timer.h"

namespace dnl {

void Runner::backward(Run& run, bool shared_later, Completion& completion, u32 number) {
  const ProductCounts before = backend_->product_counts();
  run.spent_types.assign(run.plan.types.size(), 0);
  find_alone(run);
  find_assigned_in_parts(run);
  find_spent_sums(run);
  for (const PlanType& type : run.plan.types)
    if (spends_own(type)) run.spent |= kSpentOwn;
  for (u32 k = static_cast<u32>(run.plan.groups.size()); k-- > 0;) {
    back_group(run, k, shared_later);
    if (completion.watch) completion.passed(number, k);
  }
  count_products(before);
}

// Types that keep the gradient of argument 0 (Keep::Arg0) or have an output over it (Over::Arg0), and whose members are
// each the one consumer of an argument that has a fresh gradient of its own.
void Runner::find_alone(Run& run) {
  run.alone.assign(run.plan.types.size(), 0);
  for (u32 index = 0; index < run.plan.groups.size(); ++index) {
    const Group& group = run.plan.groups[index];
    const PlanType& type = run.plan.types[group.type];
    const bool first = index == type.first_group;
    const OpDef& op = op_def(g_.sig(type.sig).op);
    if ((op.keep != Keep::Arg0 && !type.over) || g_.arg_shared(type.sig, 0) || !(first || run.alone[group.type]))
      continue;
    bool all = true;
    for (u32 k = 0; k < group.count && all; ++k) {
      const NodeId i = run.plan.order[group.begin + k];
      if (!reached(i)) continue;
      const NodeId a = run.operands.ids[run.operands.arg(index, 0).first + k];
      all = ((*gradients.reached)[a] & (kReader - 1)) == kReached && gradients[a] && !state(a);
    }
    run.alone[group.type] = all;
  }
}

// Sums that outputs lie over (Over::Arg0) are gone once forward has run, and the outputs are needed for the last time
// by the backward call that assigns the gradients of the sums. So these lie there, too: half as much memory to go
// through. All such sums of a run or none, for restore(), and only if they fill their types: the gradients of a type
// lie in one slab.
void Runner::find_spent_sums(Run& run) {
  u32 wanted = 0, found = 0;
  for (const Group& group : run.plan.groups) {
    if (!run.plan.types[group.type].over) continue;
    if (!run.alone[group.type]) return;
    wanted += group.count;
  }
  if (!wanted) return;
  Vec<u8>& spent = run.spent_types;
  constexpr u8 kParts = 1, kSums = 2, kOthers = 4;
  bool all = true;
  for (u32 index = 0; index < run.plan.groups.size(); ++index) {
    const bool sums = all_overwritten(run, index);
    u8& known = spent[run.plan.groups[index].type];
    known |= sums ? kSums : kOthers;
    all &= !(known & kSums) || !(known & kOthers);
    if (sums) found += run.plan.groups[index].count;
  }
  all &= found == wanted;
  for (u8& t : spent) t = (t & kParts) || (all && (t & kSums));
  if (!all) return;
  for (const Group& group : run.plan.groups) {
    if (!spent[group.type] || op_def(g_.sig(run.plan.types[group.type].sig).op).in_parts) continue;
    for (u32 k = 0; k < group.count; ++k) {
      const NodeId i = run.plan.order[group.begin + k];
      if (gradients[i]) gradients.at[i] = g_.value(i);
    }
  }
  run.spent |= kSpentSums;
}

// Does every member of the group have an output of another node over it?
bool Runner::all_overwritten(const Run& run, u32 index) const {
  const Group& group = run.plan.groups[index];
  const Signature& sig = g_.sig(run.plan.types[group.type].sig);
  if (op_def(sig.op).in_parts || sig.visible != 1) return false;
  for (u32 k = 0; k < group.count; ++k)
    if (!g_.node(run.plan.order[group.begin + k]).is(kOverwritten)) return false;
  return true;
}

// Joined nodes are read in parts, each part by one node. Where all of these take part, they assign their parts and
// nothing is cleared beforehand; as a rule they do so where the values lie, which nobody needs any more: memory that is
// at hand, and half as much. All of a run's or none: nodes of several types may be arguments of one call.
void Runner::find_assigned_in_parts(Run& run) {
  auto each = [&](auto f) {
    for (const Group& group : run.plan.groups) {
      if (!op_def(g_.sig(run.plan.types[group.type].sig).op).in_parts) continue;
      for (u32 k = 0; k < group.count; ++k) {
        const NodeId i = run.plan.order[group.begin + k];
        if (reached(i) && !f(i)) return false;
      }
    }
    return true;
  };
  bool apart = false;
  const bool all = each([&](NodeId i) {
    apart |= g_.node(i).is(kGradApart);
    if (!g_.node(i).is(kOverwritten)) return false;  // somebody made it by hand
    return (*gradients.reached)[i] / kReader == g_.readers(i) && g_.readers(i) < kMostReaders && gradients[i] &&
           !state(i);
  });
  if (!all) return;
  each([&](NodeId i) {
    state(i) = Gradients::kInParts;
    if (apart) return true;
    gradients.at[i] = g_.value(i);
    run.spent |= kSpentParts;
    return true;
  });
  if (!(run.spent & kSpentParts)) return;
  for (u32 t = 0; t < run.plan.types.size(); ++t)
    run.spent_types[t] = op_def(g_.sig(run.plan.types[t].sig).op).in_parts;
}

// Gradients of outputs that lie where the values lie.
void Runner::lay_gradient_over(CallFrame& f, const Run& run, u32 type) const {
  if (run.spent_types[type]) f.dy[0] = f.y[0];
  if (!spends_own(run.plan.types[type])) return;
  const u32 last = g_.sig(f.sig).total - 1u;
  f.dy[last] = f.y[last];
}

// The last output is read for the last time when its gradient is written (Over::Arg0), wherever it lies.
bool Runner::spends_own(const PlanType& type) const {
  return !type.over && op_def(g_.sig(type.sig).op).over == Over::Arg0;
}

bool Runner::reached(NodeId i) const {
  const u32 visible = g_.signature(i).visible;
  for (u32 o = 0; o < visible && i + o < gradients.reached->size(); ++o)
    if ((*gradients.reached)[i + o]) return true;
  return false;
}

bool Runner::active(NodeId i, const Signature& sig) const {
  const Vec<u8>& reached = *gradients.reached;
  for (u32 o = 0; o < sig.visible && i + o < reached.size(); ++o)
    if (reached[i + o] && (sig.partial || state(root_of(i + o)))) return true;
  return false;
}

// The next members, from `from` on, that a gradient flows into: [returned, *to), empty at the end. Those that read an
// argument in part take part even if nothing flows into them: their parts of its gradient must be written.
u32 Runner::active_from(const NodeId* members, u32 from, u32 count, const Signature& sig, u32* to) const {
  while (from < count && !active(members[from], sig)) ++from;
  *to = from;
  while (*to < count && active(members[*to], sig)) ++*to;
  return from;
}

void Runner::back_group(const Run& run, u32 index, bool shared_later) {
  const Group& group = run.plan.groups[index];
  const PlanType& type = run.plan.types[group.type];
  const Signature& sig = g_.sig(type.sig);
  const OpDef& op = op_def(sig.op);
  const NodeId* members = run.plan.order.data() + group.begin;
  if (op.backward) {
    TraceScope trace(Phase::BackwardBatch, &g_);
    describe(trace, run, group);
    for (u32 from = 0, to; (from = active_from(members, from, group.count, sig, &to)) < group.count; from = to)
      back_members(run, index, from, to - from);
  }
  if (index == type.first_group && forms_apart(run, group.type) && !(shared_later && forms_at_end(run, group.type)))
    back_shared(run, group.type, all_shared());
}

// In reverse order of groups a type's first group comes last: all stacked gradients are there.
bool Runner::forms_apart(const Run& run, u32 type) const {
  return op_def(g_.sig(run.plan.types[type].sig).op).backward_shared && !run.with_stacked[type];
}

// What the run itself has made goes on backward with the gradient, so that must be there in time.
bool Runner::forms_at_end(const Run& run, u32 type) const {
  if (!forms_apart(run, type)) return false;
  const u32 sig = run.plan.types[type].sig;
  for (u32 j = 0; j < g_.sig(sig).nargs; ++j)
    if (g_.arg_shared(sig, j) && !made_outside(run, g_.shared_arg(sig, j))) return false;
  return true;
}

// What may be formed either way had better be formed with the stacked gradients: what flows back is at hand then, and
// repeated rows are looked for once. But with threads only what takes little: what is left to the end fills the time of
// threads that come late or are done early.
void Runner::choose_shared(Run& run, bool lane) const {
  constexpr u64 kLittle = 16;  // of these parts one
  const Vec<PlanType>& types = run.plan.types;
  u64 all = 0;
  for (u32 t = 0; lane && t < types.size(); ++t) all += shared_work(types[t]);
  run.with_stacked.resize(types.size());
  for (u32 t = 0; t < types.size(); ++t) {
    const PlanType& type = types[t];
    const Shared when = op_def(g_.sig(type.sig).op).shared;
    bool with = when != Shared::AtEnd && run.plan.groups[type.first_group].count == type.count;
    if (with && when == Shared::EitherWay && options_.threads > 1)
      with = lane && shares_small(type) && shared_work(type) * kLittle <= all;
    run.with_stacked[t] = with;
  }
}

u64 Runner::shared_work(const PlanType& type, u32 j) const {
  const Dim& out = g_.dim_by_id(g_.sig(type.sig).dim[0]);
  return type.count * (out.size() / std::max(out.rows(), 1u)) * g_.dim(g_.shared_arg(type.sig, j)).size();
}

u64 Runner::shared_work(const PlanType& type) const {
  const Signature& s = g_.sig(type.sig);
  u64 sum = 0;
  for (u32 j = 0; j < s.nargs && op_def(s.op).backward_shared; ++j)
    if (g_.arg_shared(type.sig, j)) sum += shared_work(type, j);
  return sum;
}

// Each lane but the first adds up a copy of such gradients.
bool Runner::shares_small(const PlanType& type) const {
  constexpr std::size_t kSmall = std::size_t(1) << 16;
  for (u32 j = 0; j < g_.sig(type.sig).nargs; ++j)
    if (g_.arg_shared(type.sig, j) && g_.dim(g_.shared_arg(type.sig, j)).size() > kSmall) return false;
  return true;
}

void Runner::keep_room_of(const Runner& other) {
  type_members_.reserve(other.type_members_.capacity());
  scratch_.arena.reserve(other.scratch_.arena.reserved());
  scratch_.floats.reserve(other.scratch_.floats.reserved());
}

u32 Runner::together(u32 sig, u32 j) const {
  const Signature& s = g_.sig(sig);
  const auto first = op_def(s.op).together;
  return first ? static_cast<u32>(first(static_cast<int>(s.nargs), g_.key(sig), static_cast<int>(j))) : j;
}

void Runner::backward_shared(const Run& run, u32 type, u32 arg, const Gradients& of_lane, const Gradients& common) {
  const ProductCounts before = backend_->product_counts();
  back_shared(run, type, {arg, of_lane, common});
  count_products(before);
}

// Stacked arguments of consecutive members of a group.
void Runner::back_members(const Run& run, u32 index, u32 from, u32 count) {
  scratch_.rewind();
  CallFrame f;
  const Group& group = run.plan.groups[index];
  const NodeId* members = run.plan.order.data() + group.begin + from;
  begin_call(f, run, group.type, members, count, group.slot + from);
  lay_gradient_over(f, run, group.type);
  zero_unwritten_outputs(f, members, count);
  f.call.kept = f.op->keep == Keep::Arg0 && run.alone[group.type];
  f.call.transposes = &transposes_;
  no_targets(f);
  // First those that are added to: a stacked argument may be one of them, too, and must not be assigned then.
  bool wanted = run.with_stacked[group.type] && shared_targets(f, all_shared());
  wanted |= targets(f, run, index, from * f.items) || f.op->backward_shared;
  if (!wanted) return;
  arguments_again(f, run, index, from * f.items);
  Timer timer(options_.profile);
  if (!alone || !parts_.backward(*backend_, f.call, options_, assigns_apart(f))) backend_->backward(f.call);
  for (const Later& l : later_) backend_->add_rows(l.rows, l.size, l.from, l.to);
  if (options_.profile) profile[g_.sig(f.sig).op].backward += timer.lap();
}

// Does each member assign gradients that nobody else of this call writes to?
bool Runner::assigns_apart(const CallFrame& f) const {
  bool all = true;
  for (u32 j = 0; j < f.nargs && all; ++j) {
    if (f.shared[j] || !f.dx[j].wanted()) continue;
    all = !f.acc[j] && f.target[j].fresh == static_cast<u32>(f.call.members);
  }
  return all;
}

// The arguments of a call that begins with this member of a group's, as forward noted them.
void Runner::arguments_again(CallFrame& f, const Run& run, u32 group, u32 from) {
  for (u32 j = 0; j < f.nargs; ++j) {
    const Rows& r = run.operands.arg(group, j).rows;
    f.x[j] = f.shared[j] ? shared_argument(f.sig, j) : r.from(from);
  }
  lay_output_over(f, run);
}

// An output that nothing flowed into has an undefined gradient: it is zero.
void Runner::zero_unwritten_outputs(CallFrame& f, const NodeId* members, u32 count) {
  const u32 visible = g_.sig(f.sig).visible;
  for (u32 o = 0; o < visible; ++o) {
    float** address = nullptr;
    u32 unwritten = 0;
    for (u32 m = 0; m < count; ++m) {
      const NodeId i = members[m] + o;
      if (i < gradients.reached->size() && state(i)) continue;
      if (!address) address = scratch_.arena.array<float*>(count);
      address[unwritten++] = f.dy[o][m * f.items];
    }
    if (unwritten) backend_->fill_rows(unwritten, f.items * f.out_dim[o].size(), 0.f, rows_from(address, unwritten));
  }
}

// Room for where gradients go; so far nobody wants any.
void Runner::no_targets(CallFrame& f) {
  Arena& a = scratch_.arena;
  f.call.dx = f.dx = a.array<Rows>(f.nargs + 1);
  f.call.acc = f.acc = a.array<bool>(f.nargs + 1);
  f.target = a.array<CallFrame::Target>(f.nargs + 1);
  for (u32 j = 0; j < f.nargs; ++j) {
    f.dx[j] = Rows{};
    f.acc[j] = true;
    f.target[j] = {};
  }
}

// Where the gradients of all stacked arguments go. False: nobody wants any.
bool Runner::targets(CallFrame& f, const Run& run, u32 group, u32 from) {
  later_.clear();
  fresh_roots_.clear();
  fresh_begin_.resize(f.nargs + 1);
  ++serial_;
  bool wanted = false;
  for (u32 j = 0; j < f.nargs; ++j) {
    fresh_begin_[j] = static_cast<u32>(fresh_roots_.size());
    if (f.shared[j]) continue;
    target(f, j, run.operands.ids.data() + run.operands.arg(group, j).first + from);
    wanted |= f.dx[j].wanted();
  }
  fresh_begin_[f.nargs] = static_cast<u32>(fresh_roots_.size());
  // Threads that share a call must not meet in one gradient: then whatever is old is added later.
  const bool shares = alone && CallParts::worth(f.call, options_, false) > 1;
  const auto adds_later = [&](u32 j) { return shares ? f.target[j].in_parts == 0 : f.target[j].few_old(); };
  bool several = f.partly, later = !f.partly && !g_.sig(f.sig).partial && (shares || !f.op->unites_rows);
  for (u32 j = 0; j < f.nargs; ++j) {
    several |= f.target[j].again != 0;
    later &= !f.target[j].again || adds_later(j);
  }
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.shared[j] || !f.dx[j].wanted()) continue;
    const CallFrame::Target& t = f.target[j];
    if (later && t.old && adds_later(j))
      add_later(f, j, run.operands.ids.data() + run.operands.arg(group, j).first + from);
    else
      settle_target(f, j, several && !later);
  }
  return wanted;
}

// Collects the addresses of one argument's gradients and what is known of their state.
void Runner::target(CallFrame& f, u32 j, const NodeId* operands) {
  const u32 k = static_cast<u32>(f.call.members);
  float** address = scratch_.arena.array<float*>(k);
  float* nowhere = nullptr;  // members whose argument wants no gradient write here
  u32 wanted = 0;
  for (u32 m = 0; m < k; ++m) {
    const NodeId a = operands[m];
    float* p = gradients[a];
    if (!p) {
      if (!nowhere) nowhere = scratch_.floats.floats(f.arg_dim[j]->size());
      address[m] = nowhere;
      continue;
    }
    ++wanted;
    address[m] = p;
    const NodeId root = root_of(a);
    u32& written = state(root);
    if (written == 0) {
      written = serial_;
      fresh_roots_.push_back(root);
      ++f.target[j].fresh;
      if (root != a) {
        f.partly |= g_.node(a).is(kPartial);
        f.target[j].of_others = true;
      }
    } else if (written == Gradients::kInParts) {
      ++f.target[j].in_parts;
    } else {
      f.target[j].again += written == serial_;
      ++f.target[j].old;
    }
  }
  if (wanted) f.dx[j] = rows_from(address, k);
}

// All members assign; those whose gradients are not fresh, to memory of their own.
void Runner::add_later(CallFrame& f, u32 j, const NodeId* operands) {
  const u32 k = static_cast<u32>(f.call.members);
  const std::size_t size = f.arg_dim[j]->size();
  float** address = scratch_.arena.array<float*>(k);
  float** to = scratch_.arena.array<float*>(f.target[j].old);
  float* own = scratch_.floats.floats(f.target[j].old * size);
  const Rows from{own, static_cast<std::ptrdiff_t>(size), nullptr};
  u32 old = 0;
  u32 fresh = fresh_begin_[j];  // these come in the order of members
  for (u32 m = 0; m < k; ++m) {
    address[m] = f.dx[j][m];
    if (!gradients[operands[m]]) continue;
    if (fresh < fresh_begin_[j + 1] && fresh_roots_[fresh] == root_of(operands[m])) {
      ++fresh;
      continue;
    }
    to[old++] = address[m];
    address[m] = own;
    own += size;
  }
  if (old) later_.push_back({old, size, from, rows_from(to, old)});
  f.dx[j] = rows_from(address, k);
  f.acc[j] = false;
  f.target[j] = {f.target[j].fresh + f.target[j].old, 0, 0, 0, false};
}

// Decides between assigning and adding. several: gradients may be written by more than one member.
void Runner::settle_target(CallFrame& f, u32 j, bool several) {
  const CallFrame::Target& t = f.target[j];
  const bool in_part = g_.sig(f.sig).partial && f.arg_dim[j]->size() > f.out_dim[0].size();
  f.acc[j] = (t.old > 0 || (several && !t.in_parts) || (in_part && t.fresh > 0)) && !(j == 0 && f.call.kept);
  if (!f.acc[j]) return;
  const std::size_t size = f.arg_dim[j]->size();
  float** address = nullptr;
  u32 alike = 0;
  for (u32 r = fresh_begin_[j]; r < fresh_begin_[j + 1]; ++r) {
    float* at = gradients[fresh_roots_[r]];
    if (const std::size_t n = t.of_others ? g_.dim(fresh_roots_[r]).size() : size; n != size) {
      backend_->fill(n, 0.f, at);
      continue;
    }
    if (!address) address = scratch_.arena.array<float*>(fresh_begin_[j + 1] - r);
    address[alike++] = at;
  }
  if (alike) backend_->fill_rows(alike, size, 0.f, rows_from(address, alike));
}

// Where the gradients of shared arguments go; they are added to. False: nobody wants any.
bool Runner::shared_targets(CallFrame& f, const SharedTargets& to) {
  const Gradients& common = to.common;
  bool wanted = false;
  for (u32 j = 0; j < f.nargs; ++j) {
    if (!f.shared[j] || !wants(to, f.sig, j)) continue;
    const NodeId a = g_.shared_arg(f.sig, j);
    f.dx[j] = Rows{common[a], 0, nullptr};
    f.acc[j] = true;
    if (!common[a]) continue;
    wanted = true;
    const NodeId root = root_of(a);
    if (state(root)) continue;
    backend_->fill(g_.dim(root).size(), 0.f, common[root]);
    state(root) = ++serial_;
  }
  return wanted;
}

// Shared arguments of a whole type, once all its groups have their stacked gradients.
void Runner::back_shared(const Run& run, u32 type_index, const SharedTargets& to) {
  const PlanType& type = run.plan.types[type_index];
  bool wanted = false;
  for (u32 j = 0; j < g_.sig(type.sig).nargs && !wanted; ++j) {
    if (!g_.arg_shared(type.sig, j)) continue;
    const NodeId a = g_.shared_arg(type.sig, j);
    wanted = to.common[a] && wants(to, type.sig, j);
  }
  if (!wanted) return;
  TraceScope trace(Phase::SharedBatch, &g_);
  describe(trace, run, run.plan.groups[type.first_group]);
  trace.event.members = type.count;
  type_members_.clear();
  for (u32 k = type.first_group; type_members_.size() < type.count; ++k) {
    const Group& group = run.plan.groups[k];
    if (group.type != type_index) continue;
    const NodeId* from = run.plan.order.data() + group.begin;
    std::memcpy(type_members_.extend(group.count), from, group.count * sizeof(NodeId));
  }
  const Signature& sig = g_.sig(type.sig);
  const NodeId* members = type_members_.data();
  for (u32 from = 0, end; (from = active_from(members, from, type.count, sig, &end)) < type.count; from = end)
    back_shared_members(run, type_index, members + from, end - from, from, to);
}

// The arguments of members [from, from + f.call.members) of a type's calls, through all its groups.
void Runner::arguments_of_type(CallFrame& f, const Run& run, u32 type, u32 from) {
  const PlanType& t = run.plan.types[type];
  const u32 count = static_cast<u32>(f.call.members);
  if (run.plan.groups[t.first_group].count == t.count) return arguments_again(f, run, t.first_group, from);
  for (u32 j = 0; j < f.nargs; ++j) {
    if (f.shared[j]) {
      f.x[j] = shared_argument(f.sig, j);
      continue;
    }
    float** address = scratch_.arena.array<float*>(count);
    u32 filled = 0;
    for (u32 k = t.first_group; filled < count; ++k) {
      const Group& group = run.plan.groups[k];
      const u32 slot = group.slot * f.items, end = slot + group.count * f.items;
      if (group.type != type || end <= from) continue;
      const Rows& r = run.operands.arg(k, j).rows;
      for (u32 m = std::max(slot, from); m < end && filled < count; ++m) address[filled++] = r[m - slot];
    }
    f.x[j] = rows_from(address, count);
  }
  lay_output_over(f, run);
}

void Runner::back_shared_members(const Run& run, u32 type, const NodeId* members, u32 count, u32 slot,
                                 const SharedTargets& to) {
  scratch_.rewind();
  CallFrame f;
  begin_call(f, run, type, members, count, slot);
  lay_gradient_over(f, run, type);
  arguments_of_type(f, run, type, slot * f.items);
  no_targets(f);
  f.call.kept = f.op->keep == Keep::Arg0 && run.alone[type];
  if (f.call.kept && !f.shared[0]) {
    float** address = scratch_.arena.array<float*>(count);
    for (u32 m = 0; m < count; ++m) address[m] = to.of_lane[g_.operands(members[m])[0]];
    f.dx[0] = rows_from(address, count);
  }
  shared_targets(f, to);
  Timer timer(options_.profile);
  const bool done = alone && parts_.backward_shared(*backend_, f.call, options_);
  for (u32 j = 0; j < f.nargs && !done; ++j)
    if (f.shared[j] && f.dx[j].wanted()) backend_->backward_shared(f.call, static_cast<int>(j));
  if (options_.profile) profile[g_.sig(f.sig).op].backward += timer.lap();
}

}  // namespace dnl
