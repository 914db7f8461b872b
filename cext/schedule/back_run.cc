#include "schedule/back_run.h"

#include <algorithm>

namespace dnl {

void BackRun::begin(Gradients& gradients, Run& run, Vec<float*>& at, BackLane& lane, const BackOptions& options,
                    bool in_lanes) {
  g_ = &gradients.g;
  gradients_ = &gradients;
  run_ = &run;
  at_ = &at;
  lane_ = &lane;
  options_ = options;
  in_lanes_ = in_lanes;
  later_.clear();
  most_spare_ = 0;
  choose_shared();
}

void BackRun::plan() {
  run_->spent.assign(run_->plan.types.size(), 0);
  find_sole_gradients();
  find_in_parts();
  find_spent_sums();
  find_spent_outputs();
  for (u32 k = static_cast<u32>(run_->plan.groups.size()); k-- > 0;) {
    plan_group(k);
    if (options_.watched && !in_lanes_) lane_->steps.push_back({StepKind::Passed, false, false, k, 0, 0, 0});
  }
}

// ---- who takes part ----------------------------------------------------------------------------------------------

bool BackRun::active(NodeId i, const Signature& sig) const {
  for (u32 o = 0; o < sig.visible; ++o)
    if (gradients_->reaches(i + o) && (sig.partial || gradients_->written[gradients_->root(i + o)])) return true;
  return false;
}

// The next members, from `from` on, that a gradient flows into: [returned, *to), empty at the end. Those that read an
// argument in part take part even if nothing flows into them: their parts of its gradient must be written.
u32 BackRun::active_from(const NodeId* members, u32 from, u32 count, const Signature& sig, u32* to) const {
  while (from < count && !active(members[from], sig)) ++from;
  *to = from;
  while (*to < count && active(members[*to], sig)) ++*to;
  return from;
}

// ---- gradients over values ---------------------------------------------------------------------------------------

bool BackRun::comes_to(NodeId i) const {
  for (u32 o = 0; o < g_->signature(i).visible; ++o)
    if (gradients_->reaches(i + o)) return true;
  return false;
}

// f(node, number in the group) for those of the group that the pass comes to, as long as it is true.
template <class F>
bool BackRun::each_member(const Group& group, F f) const {
  for (u32 k = 0; k < group.count; ++k) {
    const NodeId i = run_->plan.order[group.begin + k];
    if (comes_to(i) && !f(i, k)) return false;
  }
  return true;
}

// Types that keep the gradient of argument 0 (Keep::Arg0) or have an output over it (Over::Arg0), and whose members are
// each the one consumer of an argument that has a fresh gradient of its own.
void BackRun::find_sole_gradients() {
  const Plan& plan = run_->plan;
  sole_gradient_.assign(plan.types.size(), 0);
  for (u32 index = 0; index < plan.groups.size(); ++index) {
    const Group& group = plan.groups[index];
    const PlanType& type = plan.types[group.type];
    if ((op_of(group.type).keep != Keep::Arg0 && !type.over) || g_->arg_shared(type.sig, 0)) continue;
    if (index != type.first_group && !sole_gradient_[group.type]) continue;
    const NodeId* args = run_->operands.ids.data() + run_->operands.arg(index, 0).first;
    sole_gradient_[group.type] = each_member(group, [&](NodeId, u32 k) {
      const NodeId a = args[k];
      return at(a) && (gradients_->reached[a] & (kReader - 1)) == kReached && !gradients_->written[a];
    });
  }
}

// f(node) for joined nodes that the pass comes to, as long as it is true.
template <class F>
bool BackRun::each_joined(F f) const {
  return std::all_of(run_->plan.groups.begin(), run_->plan.groups.end(), [&](const Group& group) {
    return !op_of(group.type).in_parts || each_member(group, [&](NodeId i, u32) { return f(i); });
  });
}

// Joined nodes are read in parts, each part by one node. Where all of these take part, they assign their parts and
// nothing is cleared beforehand; as a rule they do so where the values lie, which nobody needs any more: memory that is
// at hand, and half as much. All of a run's or none: nodes of several types may be arguments of one call.
void BackRun::find_in_parts() {
  bool any = false, apart = false;
  const bool all = each_joined([&](NodeId i) {
    any = true;
    apart |= g_->node(i).is(kGradApart);
    if (!g_->node(i).is(kOverwritten)) return false;  // somebody made it by hand
    if (g_->node(i).is(kPartUnread)) return false;
    return gradients_->reached[i] / kReader == g_->readers(i) && g_->readers(i) < kMostReaders && at(i) &&
           !gradients_->written[i];
  });
  if (!all || !any) return;
  each_joined([&](NodeId i) {
    gradients_->written[i] = kInParts;
    if (!apart) (*at_)[i] = g_->value(i);
    return true;
  });
  for (u32 t = 0; t < run_->plan.types.size() && !apart; ++t) {
    if (op_of(t).in_parts) spend(t, kSpentOutput);
    if (g_->sig(run_->plan.types[t].sig).partial) spend(t, kReadsSpent);
  }
}

// Does every member of the group have an output of another node over it?
bool BackRun::all_overwritten(const Group& group) const {
  if (op_of(group.type).in_parts || g_->sig(run_->plan.types[group.type].sig).visible != 1) return false;
  const NodeId* members = run_->plan.order.data() + group.begin;
  return std::all_of(members, members + group.count, [&](NodeId i) { return g_->node(i).is(kOverwritten); });
}

// Sums that outputs lie over (Over::Arg0) are gone once forward has run, and the outputs are needed for the last time
// by the backward call that assigns the gradients of the sums. So these lie there, too: half as much memory to go
// through. All such sums of a run or none, for restore(), and only if they fill their types: the gradients of a type
// lie in one slab.
void BackRun::find_spent_sums() {
  constexpr u8 kSums = 64, kOthers = 128;
  const Plan& plan = run_->plan;
  u32 wanted = 0, found = 0;
  bool all = true;
  for (const Group& group : plan.groups) {
    if (!plan.types[group.type].over) continue;
    all &= sole_gradient_[group.type] != 0;
    wanted += group.count;
  }
  if (!wanted || !all) return;
  Vec<u8>& spent = run_->spent;
  for (const Group& group : plan.groups) {
    const bool sums = all_overwritten(group);
    u8& known = spent[group.type];
    known |= sums ? kSums : kOthers;
    all &= !(known & kSums) || !(known & kOthers);
    if (sums) found += group.count;
  }
  all &= found == wanted;
  for (u32 t = 0; t < plan.types.size(); ++t) {
    const bool sums = all && (spent[t] & kSums);
    spent[t] &= static_cast<u8>(~(kSums | kOthers));
    if (sums) spend(t, kSpentOutput);
    if (all && plan.types[t].over) spend(t, kReadsSpent);
  }
  for (const Group& group : plan.groups) {
    if (!all || !(spent[group.type] & kSpentOutput) || op_of(group.type).in_parts) continue;
    each_member(group, [&](NodeId i, u32) {  // of the run, nodes may stand behind the loss
      if (at(i)) (*at_)[i] = g_->value(i);
      return true;
    });
  }
}

// Last outputs that might lie over argument 0 but do not are read for the last time when their gradient is written.
void BackRun::find_spent_outputs() {
  for (u32 t = 0; t < run_->plan.types.size(); ++t)
    if (!run_->plan.types[t].over && op_of(t).over == Over::Arg0) spend(t, kSpentLast | kReadsSpent);
}

// ---- calls -------------------------------------------------------------------------------------------------------

void BackRun::plan_group(u32 index) {
  const Group& group = run_->plan.groups[index];
  const PlanType& type = run_->plan.types[group.type];
  const Signature& sig = g_->sig(type.sig);
  if (op_def(sig.op).backward) {
    const NodeId* members = run_->plan.order.data() + group.begin;
    for (u32 from = 0, to; (from = active_from(members, from, group.count, sig, &to)) < group.count; from = to)
      plan_call(index, from, to - from);
  }
  // In reverse order a type's first group comes last: all gradients of its outputs are there.
  if (index != type.first_group || !forms_apart(group.type) || !wants_shared(type.sig)) return;
  const bool later = in_lanes_ && forms_at_end(group.type);
  list_members(group.type);
  for (u32 from = 0, to; (from = active_from(members_.data(), from, type.count, sig, &to)) < type.count; from = to) {
    const Later work{group.type, from, to - from};
    if (later)
      later_.push_back(work);
    else
      form_shared(work, kAllArgs, *at_);
  }
}

// Stacked arguments of consecutive members of a group, and shared ones where they are formed together.
void BackRun::plan_call(u32 index, u32 first, u32 count) {
  const u32 t = run_->plan.groups[index].type, sig = run_->plan.types[t].sig;
  Planned c{index, t, first, count, g_->sig(sig), op_of(t), kept(t), false};
  Target* to = begin_call(c.sig.call_nargs);
  // First those that are added to: a stacked argument may be one of them, too, and must not be assigned then.
  bool wanted = with_stacked_[t] && add_shared(sig, kAllArgs, *at_, to);
  wanted |= find_targets(c, to) || c.op.backward_shared;
  if (!wanted) return lane_->targets.resize(lane_->targets.size() - c.sig.call_nargs);
  zero_unwritten(c);
  bool apart = true;
  for (u32 j = 0; j < c.sig.call_nargs; ++j)
    if (!g_->arg_shared(sig, j) && to[j].rows.wanted()) apart &= !to[j].add && found_[j].fresh == c.members();
  end_call({StepKind::Stacked, c.kept, apart, index, first, count, 0}, c.sig.call_nargs);
}

void BackRun::form_shared(const Later& later, u32 arg, const Vec<float*>& common) {
  const u32 sig = run_->plan.types[later.type].sig, nargs = g_->sig(sig).call_nargs;
  Target* to = begin_call(nargs);
  if (!add_shared(sig, arg, common, to)) return lane_->targets.resize(lane_->targets.size() - nargs);
  const bool kept_here = kept(later.type);
  if (kept_here && !g_->arg_shared(sig, 0)) {
    list_members(later.type);
    address_.clear();
    for (u32 m = 0; m < later.count; ++m) address_.push_back((*at_)[g_->operands(members_[later.first + m])[0]]);
    to[0].rows = rows(address_.data(), later.count);
  }
  end_call({StepKind::Shared, kept_here, false, later.type, later.first, later.count, 0}, nargs);
}

// Room for the targets of a call; so far nobody wants any.
Target* BackRun::begin_call(u32 nargs) {
  zero_.clear();
  add_.clear();
  spare_used_ = 0;
  Target* to = lane_->targets.extend(nargs);
  for (u32 j = 0; j < nargs; ++j) to[j] = {Rows{}, true};
  return to;
}

void BackRun::end_call(BackStep step, u32 nargs) {
  step.targets = static_cast<u32>(lane_->targets.size()) - nargs;
  emit(StepKind::Zero, zero_);
  lane_->steps.push_back(step);
  emit(StepKind::Add, add_);
}

void BackRun::emit(StepKind kind, const Vec<Move>& moves) {
  if (moves.empty()) return;
  const u32 first = static_cast<u32>(lane_->moves.size()), count = static_cast<u32>(moves.size());
  lane_->moves.append(moves);
  lane_->steps.push_back({kind, false, false, 0, first, count, 0});
}

// An output that nothing flowed into has an undefined gradient: it is zero.
void BackRun::zero_unwritten(const Planned& c) {
  const PlanType& type = run_->plan.types[c.type];
  const Group& group = run_->plan.groups[c.group];
  const NodeId* members = run_->plan.order.data() + group.begin + c.first;
  const Vec<u8>& written = gradients_->written;
  for (u32 o = 0; o < c.sig.visible; ++o) {
    u32 m = 0;
    auto next = [&] {
      while (m < c.count && members[m] + o < written.size() && written[members[m] + o]) ++m;
    };
    if (next(); m == c.count) continue;
    const u8 spent = run_->spent[c.type];
    const bool over = (o == 0 && spent & kSpentOutput) || (o + 1 == c.sig.total && spent & kSpentLast);
    if (o == 0 && type.uneven) {
      const std::ptrdiff_t shift = run_->grad_base - run_->value_base;
      for (; m < c.count; ++m, next())
        zero_.push_back(zeros(g_->value(members[m]) + shift, g_->dim(members[m]).size()));
      continue;
    }
    const std::size_t size = c.sig.items * item_size(c.sig, o);
    float* to = (over ? run_->value_base : run_->grad_base) + type.value[o] + (group.slot + c.first) * size;
    for (list_.clear(); m < c.count; ++m, next()) list_.push_back(to + m * size);
    zero_list(size);
  }
}

// Floats of one output of a member of a call.
std::size_t BackRun::item_size(const Signature& sig, u32 o) const {
  const Dim& dim = g_->dim_by_id(sig.dim[o]);
  return sig.items > 1 ? dim.batch_size() : dim.size();
}

// ---- stacked arguments -------------------------------------------------------------------------------------------

// Where the gradients of all stacked arguments go. False: nobody wants any.
bool BackRun::find_targets(Planned& c, Target* to) {
  const u32 nargs = c.sig.call_nargs;
  found_.assign(nargs, Found{});
  fresh_.clear();
  address_.resize(nargs * c.members());
  bool any = false;
  for (u32 j = 0; j < nargs; ++j)
    if (!shared(c, j)) find_target(c, j);
  for (NodeId root : fresh_) gradients_->written[root] = kWritten;
  // Threads that share a call must not meet in one gradient: then whatever is old is added later.
  const bool shares = options_.shares_calls && !in_lanes_ && shares_members(c);
  const auto adds_later = [&](const Found& t) { return shares ? t.in_parts == 0 : t.few_old(); };
  bool several = c.partly, later = !c.partly && !c.sig.partial && (shares || !c.op.unites_rows);
  for (const Found& t : found_) {
    several |= t.again != 0;
    later &= !t.again || adds_later(t);
  }
  for (u32 j = 0; j < nargs; ++j) {
    Found& t = found_[j];
    if (!t.wanted) continue;
    any = true;
    const bool defer = later && t.old && adds_later(t);
    if (defer) add_later(c, j);
    to[j].add = !defer && settle(c, j, several && !later);
    to[j].rows = rows(address_.data() + j * c.members(), c.members());
    if (!to[j].add) t.fresh += t.old;  // those that are added later are assigned now
  }
  return any;
}

// Collects the addresses of one argument's gradients and what is known of them.
void BackRun::find_target(Planned& c, u32 j) {
  const NodeId* operands = operands_of(c, j);
  float** address = address_.data() + j * c.members();
  Vec<u8>& written = gradients_->written;
  Found& t = found_[j];
  t.first_fresh = static_cast<u32>(fresh_.size());
  for (u32 m = 0, n = c.members(); m < n; ++m) {
    const NodeId a = operands[m];
    float* p = at(a);
    if (!p) {
      if (!t.nowhere) t.nowhere = spare(most_size(c, j));
      address[m] = t.nowhere;
      continue;
    }
    t.wanted = true;
    address[m] = p;
    const NodeId root = gradients_->root(a);
    switch (written[root]) {
      case kNothing:
        written[root] = kNow;
        fresh_.push_back(root);
        ++t.fresh;
        if (root == a) break;
        c.partly |= g_->node(a).is(kPartial);
        t.of_others = true;
        break;
      case kInParts: ++t.in_parts; break;
      case kNow: ++t.again; [[fallthrough]];
      default: ++t.old;
    }
  }
  t.end_fresh = static_cast<u32>(fresh_.size());
}

// f(m) for members whose gradient of the argument is wanted and not fresh.
template <class F>
void BackRun::each_old(const Planned& c, u32 j, F f) const {
  const NodeId* operands = operands_of(c, j);
  u32 fresh = found_[j].first_fresh;  // these come in the order of members
  for (u32 m = 0, n = c.members(); m < n; ++m) {
    if (!at(operands[m])) continue;
    if (fresh < found_[j].end_fresh && fresh_[fresh] == gradients_->root(operands[m]))
      ++fresh;
    else
      f(m);
  }
}

// All members assign; those whose gradients are not fresh, to memory of their own.
void BackRun::add_later(const Planned& c, u32 j) {
  float** address = address_.data() + j * c.members();
  if (ragged(c)) {  // members differ in size
    const NodeId* operands = operands_of(c, j);
    return each_old(c, j, [&](u32 m) {
      const std::size_t size = g_->dim(operands[m]).size();
      float* own = spare(size);
      add_.push_back({1, size, Rows{own, 0, nullptr}, Rows{address[m], 0, nullptr}});
      address[m] = own;
    });
  }
  const std::size_t size = arg_size(c, j);
  float* own = spare(found_[j].old * size);
  const Rows from{own, static_cast<std::ptrdiff_t>(size), nullptr};
  list_.clear();
  each_old(c, j, [&](u32 m) {
    list_.push_back(address[m]);
    address[m] = own;
    own += size;
  });
  const u32 count = static_cast<u32>(list_.size());
  if (count) add_.push_back({count, size, from, rows(list_.data(), count)});
}

// Decides between adding and assigning, and clears what is added to. several: gradients may be written by more than one
// member.
bool BackRun::settle(const Planned& c, u32 j, bool several) {
  const Found& t = found_[j];
  const std::size_t size = arg_size(c, j);
  const bool in_part = c.sig.partial && size > item_size(c.sig, 0);
  // An output that lies over argument 0 has its gradient there, too (Runner::lay_output_over): added, it would count
  // twice. Nobody else reads that argument.
  if (j == 0 && (c.kept || run_->plan.types[c.type].over)) return false;
  if (!t.old && (!several || t.in_parts) && (!in_part || !t.fresh)) return false;
  list_.clear();
  for (u32 r = t.first_fresh; r < t.end_fresh; ++r) {
    float* to = (*at_)[fresh_[r]];
    if (const std::size_t n = t.of_others || ragged(c) ? g_->dim(fresh_[r]).size() : size; n != size)
      zero_.push_back(zeros(to, n));
    else
      list_.push_back(to);
  }
  zero_list(size);
  if (t.nowhere) zero_.push_back(zeros(t.nowhere, most_size(c, j)));
  return true;
}

// What is listed is cleared.
void BackRun::zero_list(std::size_t size) {
  if (list_.empty()) return;
  const u32 count = static_cast<u32>(list_.size());
  zero_.push_back({count, size, Rows{}, rows(list_.data(), count)});
}

// As regular ones where they are; else the list is kept.
Rows BackRun::rows(float* const* address, u32 count) {
  const Rows found = Rows::of(address, count);
  if (found.regular()) return found;
  float** list = lane_->lists.array<float*>(count);
  std::memcpy(list, address, count * sizeof(float*));
  return Rows{nullptr, 0, list};
}

// Of the largest member.
std::size_t BackRun::most_size(const Planned& c, u32 j) const {
  std::size_t most = arg_size(c, j);
  for (u32 m = 0; ragged(c) && m < c.members(); ++m) most = std::max(most, g_->dim(operands_of(c, j)[m]).size());
  return most;
}

// What spare() may be asked for where each member has a piece of its own.
std::size_t BackRun::ragged_spare(const Planned& c, u32 j) const {
  std::size_t all = most_size(c, j) + kLine;
  for (u32 m = 0; m < c.members(); ++m) all += g_->dim(operands_of(c, j)[m]).size() + kLine;
  return all;
}

// Memory of the call that is being planned. There is room for the gradients of all arguments of any call of the run,
// which it does not take unless it writes there.
float* BackRun::spare(std::size_t n) {
  if (!most_spare_) {
    for (u32 k = 0; k < run_->plan.groups.size(); ++k) {
      const u32 t = run_->plan.groups[k].type, count = run_->plan.groups[k].count;
      const Planned c{k, t, 0, count, g_->sig(run_->plan.types[t].sig), op_of(t), false, false};
      std::size_t all = 0;
      for (u32 j = 0; j < c.sig.call_nargs; ++j)
        if (!shared(c, j)) all += ragged(c) ? ragged_spare(c, j) : (c.members() + 1) * arg_size(c, j) + 2 * kLine;
      most_spare_ = std::max(most_spare_, all);
    }
    if (lane_->spares < most_spare_) {
      lane_->spare = lane_->memory.floats(most_spare_);
      lane_->spares = most_spare_;
    }
  }
  float* p = lane_->spare + spare_used_;
  spare_used_ += (n + kLine - 1) / kLine * kLine;
  return p;
}

// In how many parts would threads run the call?
bool BackRun::shares_members(const Planned& c) const {
  std::size_t outputs = 0, weights = 0;
  for (u32 o = 0; o < c.sig.total; ++o) outputs += item_size(c.sig, o);
  for (u32 j = 0; j < c.sig.call_nargs; ++j)
    if (shared(c, j)) weights += g_->dim(g_->shared_arg(run_->plan.types[c.type].sig, j)).size();
  return options_.team.parts(c.members(), outputs, weights, false) > 1;
}

// ---- shared arguments --------------------------------------------------------------------------------------------

u32 formed_with(const Graph& g, u32 sig, u32 j) {
  const Signature& s = g.sig(sig);
  const auto first = op_def(s.op).formed_with;
  return first ? static_cast<u32>(first(static_cast<int>(s.nargs), g.key(sig), static_cast<int>(j))) : j;
}

u64 shared_work(const Graph& g, const PlanType& type, u32 j) {
  const u64 rows = std::max(g.dim_by_id(g.sig(type.sig).dim[0]).rows(), 1u);
  return slab_floats(g, type, 0) / rows * g.dim(g.shared_arg(type.sig, j)).size();
}

// What may be formed either way had better be formed with the stacked gradients: what flows back is at hand then, and
// repeated rows are looked for once. But with threads only what takes little: what is left to the end fills the time of
// threads that come late or are done early.
void BackRun::choose_shared() {
  constexpr u64 kLittle = 16;  // of these parts one
  const Plan& plan = run_->plan;
  u64 all = 0;
  for (u32 t = 0; in_lanes_ && t < plan.types.size(); ++t) all += all_shared_work(t);
  with_stacked_.resize(plan.types.size());
  for (u32 t = 0; t < plan.types.size(); ++t) {
    const Shared when = op_of(t).shared;
    bool with = when != Shared::AtEnd && plan.groups[plan.types[t].first_group].count == plan.types[t].count;
    if (with && when == Shared::EitherWay && options_.team.threads > 1)
      with = in_lanes_ && shares_small(plan.types[t]) && all_shared_work(t) * kLittle <= all;
    with_stacked_[t] = with;
  }
}

u64 BackRun::all_shared_work(u32 t) const {
  const PlanType& type = run_->plan.types[t];
  u64 sum = 0;
  for (u32 j = 0; j < g_->sig(type.sig).nargs && op_of(t).backward_shared; ++j)
    if (g_->arg_shared(type.sig, j)) sum += shared_work(*g_, type, j);
  return sum;
}

// Each lane but the first adds up a copy of such gradients.
bool BackRun::shares_small(const PlanType& type) const {
  constexpr std::size_t kSmall = std::size_t(1) << 16;
  for (u32 j = 0; j < g_->sig(type.sig).nargs; ++j)
    if (g_->arg_shared(type.sig, j) && g_->dim(g_->shared_arg(type.sig, j)).size() > kSmall) return false;
  return true;
}

// When all of its members have run backward?
bool BackRun::forms_apart(u32 type) const { return op_of(type).backward_shared && !with_stacked_[type]; }

// What the run itself has made goes on backward with the gradient, so that must be there in time.
bool BackRun::forms_at_end(u32 type) const {
  if (!forms_apart(type)) return false;
  const u32 sig = run_->plan.types[type].sig;
  for (u32 j = 0; j < g_->sig(sig).nargs; ++j)
    if (g_->arg_shared(sig, j) && !made_outside(*g_, *run_, g_->shared_arg(sig, j))) return false;
  return true;
}

// They are added to. False: nobody wants any.
bool BackRun::add_shared(u32 sig, u32 arg, const Vec<float*>& common, Target* to) {
  bool wanted = false;
  for (u32 j = 0; j < g_->sig(sig).call_nargs; ++j) {
    if (!g_->arg_shared(sig, j) || (arg != kAllArgs && arg != formed_with(*g_, sig, j))) continue;
    const NodeId a = g_->shared_arg(sig, j);
    if (a >= common.size() || !common[a]) continue;
    to[j].rows = Rows{common[a], 0, nullptr};
    wanted = true;
    const NodeId root = gradients_->root(a);
    if (gradients_->written[root]) continue;
    zero_.push_back(zeros(common[root], g_->dim(root).size()));
    gradients_->written[root] = kWritten;
  }
  return wanted;
}

bool BackRun::wants_shared(u32 sig) const {
  bool any = false;
  for (u32 j = 0; j < g_->sig(sig).nargs; ++j) any |= g_->arg_shared(sig, j) && at(g_->shared_arg(sig, j));
  return any;
}

// Members of a type, through all its groups.
void BackRun::list_members(u32 type) {
  const PlanType& t = run_->plan.types[type];
  members_.clear();
  for (u32 k = t.first_group; members_.size() < t.count; ++k) {
    const Group& group = run_->plan.groups[k];
    if (group.type != type) continue;
    members_.append(run_->plan.order.data() + group.begin, group.count);
  }
}

}  // namespace dnl
