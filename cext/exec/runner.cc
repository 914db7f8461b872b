// Running a plan forward: calls are put together group by group. Backward is in runner_backward.cc.
#include "exec/runner.h"

#include "exec/frame.h"
#include "exec/timer.h"

namespace dnl {

Runner::Runner(Graph& graph, Backend* backend, const ExecOptions& options, Transposes& transposes)
    : profile(op_count()),
      g_(graph),
      backend_(backend),
      options_(options),
      transposes_(transposes),
      scratch_(backend->memory()) {}

void Runner::release() { release_all(plan_scratch, scratch_.arena, scratch_.floats, checked_, parts_); }

void Runner::forward(Run& run) {
  const ProductCounts before = backend_->product_counts();
  list_operands(run);
  const u32 groups = static_cast<u32>(run.plan.groups.size());
  u32 checked = 0;
  for (u32 k = 0; k < groups; ++k) {
    const Group& group = run.plan.groups[k];
    if (options_.check_validity && run.plan.types[group.type].over) {  // it writes over values of before
      check_finite(run, checked, k);
      checked = k;
    }
    TraceScope trace(Phase::ForwardBatch, &g_);
    describe(trace, run, group);
    run_group(run, k);
  }
  if (options_.check_validity) check_finite(run, checked, groups);
  run.any_spent = false;
  stats.nodes += run.plan.exec.size();
  stats.batches += run.plan.groups.size();
  stats.lower_bound += run.plan.lower_bound;
  stats.plan_steps += run.plan.steps;
  count_products(before);
}

// What an event says of a batch.
void Runner::describe(TraceScope& trace, const Run& run, const Group& group) const {
  if (!trace.on()) return;
  const PlanType& type = run.plan.types[group.type];
  const Signature& sig = g_.sig(type.sig);
  for (u32 o = 0; o < type.slabs(sig); ++o) trace.event.floats += g_.dim_by_id(sig.dim[o]).size() * group.count;
  trace.event.op = sig.op;
  trace.event.members = group.count;
  trace.event.lane = run.lane;
}

// Room for the operands of all groups: rows point into it, so it must not grow later.
void Runner::list_operands(Run& run) const {
  Operands& o = run.operands;
  o.args.clear();
  o.begin.clear();
  o.outside.clear();
  u32 n = 0;
  for (const Group& group : run.plan.groups) {
    const u32 sig = run.plan.types[group.type].sig, nargs = g_.sig(sig).call_nargs;
    o.begin.push_back(static_cast<u32>(o.args.size()));
    for (u32 j = 0; j < nargs; ++j) {
      const bool shared = g_.arg_shared(sig, j);
      o.args.push_back({shared ? kNoNode : n, Rows{}});
      if (!shared) n += group.count * g_.sig(sig).items;
    }
  }
  o.ids.resize(n);
  o.at.resize(n);
}

// What products did since then, in this thread and for it.
void Runner::count_products(const ProductCounts& before) {
  ProductCounts since = backend_->product_counts() - before;
  since += parts_.take_counts();
  stats.floats_gathered += since.gathered;
  stats.floats_scattered += since.scattered;
  stats.rows_repeated += since.repeated;
}

void Runner::run_group(Run& run, u32 index, bool restore) {
  scratch_.rewind();
  CallFrame f;
  const Group& group = run.plan.groups[index];
  const NodeId* members = run.plan.order.data() + group.begin;
  begin_call(f, run, group.type, members, group.count, group.slot);
  find_arguments(f, run, index, members);
  f.call.restore = restore;
  Timer timer(options_.profile);
  if (!alone || !parts_.forward(*backend_, f.call, options_)) backend_->forward(f.call);
  if (!options_.profile) return;
  OpProfile& p = profile[g_.sig(f.sig).op];
  p.forward += timer.lap();
  ++p.calls;
  p.members += group.count;
}

// Everything of a call but the arguments: outputs, attributes, dims. Outputs are packed from `slot` on. A bundle's
// items are members.
void Runner::begin_call(CallFrame& f, const Run& run, u32 type_index, const NodeId* members, u32 count, u32 slot) {
  const PlanType& type = run.plan.types[type_index];
  const Signature& sig = g_.sig(type.sig);
  Arena& a = scratch_.arena;
  f.sig = type.sig;
  f.nargs = sig.call_nargs;
  f.items = sig.items;
  f.op = &op_def(sig.op);
  f.arg_dim = a.array<const Dim*>(f.nargs + 1);
  f.shared = a.array<bool>(f.nargs + 1);
  f.x = a.array<Rows>(f.nargs + 1);
  for (u32 j = 0; j < f.nargs; ++j) {
    f.arg_dim[j] = &g_.dim_by_id(g_.arg_dim(type.sig, members[0], j));
    f.shared[j] = g_.arg_shared(type.sig, j);
  }
  for (u32 o = 0; o < sig.total; ++o) {
    f.out_dim[o] = g_.dim_by_id(sig.dim[o]);
    if (f.items > 1) f.out_dim[o].bd = 1;
  }
  for (u32 o = 0; o < type.slabs(sig); ++o) {
    const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(f.out_dim[o].size());
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(type.value[o]) + slot * f.items * size;
    f.y[o] = Rows{run.value_base + at, size, nullptr};
    f.dy[o] = run.grad_base ? Rows{run.grad_base + at, size, nullptr} : Rows{};
  }
  const Word** member = nullptr;
  if (f.op->has_member_attrs) {
    member = a.array<const Word*>(count * f.items);
    for (u32 m = 0; m < count; ++m)  // of a bundle a list: its length, then a word per item, which finds its own at 1
      for (u32 e = 0; e < f.items; ++e) member[m * f.items + e] = g_.member(members[m]) + e;
  }
  Call& c = f.call;
  c.op = f.op;
  c.members = static_cast<int>(count * f.items);
  c.nargs = static_cast<int>(f.nargs);
  c.arg_dim = f.arg_dim;
  c.n_outputs = static_cast<int>(sig.total);
  c.out_dim = f.out_dim;
  c.x = f.x;
  c.shared = f.shared;
  c.y = f.y;
  c.key = g_.key(type.sig);
  c.member = member;
  c.scratch = &scratch_;
  c.over = type.over;
  c.of_signature = static_cast<int>(type.count * f.items);
  c.signature = type.sig;
  c.dy = f.dy;
  c.dx = nullptr;
  c.acc = nullptr;
}

// Where the arguments of a group lie; noted for backward.
void Runner::find_arguments(CallFrame& f, Run& run, u32 group, const NodeId* members) {
  Operands& o = run.operands;
  const u32 count = static_cast<u32>(f.call.members);
  u32 stacked = 0;
  for (u32 j = 0; j < f.nargs; ++j) {
    Operands::Arg& arg = o.arg(group, j);
    if (f.shared[j]) {
      f.x[j] = shared_argument(f.sig, j);
      continue;
    }
    NodeId* ids = o.ids.data() + arg.first;
    float** at = o.at.data() + arg.first;
    if (f.items > 1) {
      list_items(f, j, stacked++, members, ids);
      for (u32 m = 0; m < count; ++m) at[m] = g_.value(ids[m]);
    } else {
      constexpr u32 kAhead = 8;  // members of a group lie all over the graph
      for (u32 m = 0; m < count; ++m) {
        if (m + 2 * kAhead < count) g_.fetch(members[m + 2 * kAhead]);
        if (m + kAhead < count) g_.fetch(g_.operands(members[m + kAhead])[j]);
        ids[m] = g_.operands(members[m])[j];
        at[m] = g_.value(ids[m]);
      }
    }
    f.x[j] = arg.rows = rows_from(at, count);
    if (run.stage == kLanes) list_outside(run, arg, count);
  }
  lay_output_over(f, run);
}

// Notes which of them are made outside; most are seen not to be by the first look.
void Runner::list_outside(Run& run, Operands::Arg& arg, u32 count) const {
  Operands& o = run.operands;
  arg.outside_begin = static_cast<u32>(o.outside.size());
  for (const NodeId* a = o.ids.data() + arg.first; count-- > 0; ++a) {
    if (*a >= run.first && !g_.node(*a).is(kLeaf | kWeight | kAlias)) continue;
    if (made_outside(g_, run, *a)) o.outside.push_back(*a);
  }
  arg.outside_end = static_cast<u32>(o.outside.size());
}

// Argument j of the items of bundles, which is so manyth among the stacked ones.
void Runner::list_items(const CallFrame& f, u32 j, u32 stacked, const NodeId* members, NodeId* to) const {
  u32 each = 0;  // arguments of an item
  for (u32 i = 0; i < f.nargs; ++i) each += !f.shared[i];
  for (u32 m = 0, n = static_cast<u32>(f.call.members) / f.items; m < n; ++m) {
    const NodeId* args = g_.operands(members[m]);
    *to++ = args[j];
    args += f.nargs + stacked;
    for (u32 e = 1; e < f.items; ++e, args += each) *to++ = *args;
  }
}

// The last output where argument 0 lies; its gradient where that one's would: gradients lie in the layout of values.
void Runner::lay_output_over(CallFrame& f, const Run& run) {
  if (!f.call.over) return;
  const u32 last = g_.sig(f.sig).total - 1u;
  f.y[last] = f.x[0];
  f.dy[last] = Rows{};
  if (!run.grad_base) return;
  const std::ptrdiff_t shift = run.grad_base - run.value_base;
  if (f.x[0].regular()) {
    f.dy[last] = Rows{f.x[0].base + shift, f.x[0].stride, nullptr};
    return;
  }
  const std::size_t k = static_cast<std::size_t>(f.call.members);
  float** address = scratch_.arena.array<float*>(k);
  for (std::size_t m = 0; m < k; ++m) address[m] = f.x[0].ptr[m] + shift;
  f.dy[last] = Rows{nullptr, 0, address};
}

// One question for all values of some groups, for a device answers late; and one more to find the node.
void Runner::check_finite(const Run& run, u32 from, u32 to) {
  auto values = [&](const Group& group, u32 first, u32 count) {
    const PlanType& type = run.plan.types[group.type];
    const std::size_t size = g_.dim_by_id(g_.sig(type.sig).dim[0]).size();
    return Numbers{run.value_base + type.value[0] + (group.slot + first) * size, size * count};
  };
  checked_.clear();
  for (u32 k = from; k < to; ++k) checked_.push_back(values(run.plan.groups[k], 0, run.plan.groups[k].count));
  const std::size_t bad = backend_->first_not_finite(checked_.size(), checked_.data());
  if (bad == checked_.size()) return;
  const Group& group = run.plan.groups[from + bad];
  checked_.clear();
  for (u32 m = 0; m < group.count; ++m) checked_.push_back(values(group, m, 1));
  const std::size_t member = backend_->first_not_finite(checked_.size(), checked_.data());
  throw NotFiniteError(run.plan.order[group.begin + member], g_);
}

}  // namespace dnl
