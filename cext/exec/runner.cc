// Running a plan forward: calls are put together group by group. Backward is in runner_backward.cc.
#include "exec/runner.h"

#include "exec/frame.h"
#include "exec/pool.h"
#include "exec/timer.h"

namespace dnl {

Runner::Runner(Graph& graph, Backend* backend, const ExecOptions& options, PassCache& cache)
    : profile(op_count()),
      g_(graph),
      backend_(backend),
      options_(options),
      cache_(cache),
      scratch_(backend->memory()),
      intra_op_(backend->intra_op()) {}

void Runner::release() {
  kept_ = &own_kept_;
  own_kept_.forget();
  release_all(plan_scratch, scratch_.arena, scratch_.floats, checked_, own_kept_);
  if (intra_op_) intra_op_->release();
}

Team Runner::team() const { return {options_.threads, options_.least_work, run_lanes}; }

void Runner::forward(Run& run, bool again) {
  const ProductCounts before = backend_->product_counts();
  if (again) {
    use_kept(run);
  } else {
    kept_->forget();
    run.operands.clear();
    list_operands(run, 0);
  }
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
    again ? forward_again(run, k) : run_group(run, k);
  }
  if (options_.check_validity) check_finite(run, checked, groups);
  run.any_spent = false;
  stats.nodes += run.plan.exec.size();
  stats.batches += run.plan.groups.size();
  stats.lower_bound += run.plan.lower_bound;
  stats.plan_steps += run.plan.steps;
  count_products(before);
}

void Runner::forward_last(Run& run) {
  const ProductCounts before = backend_->product_counts();
  kept_->forget();
  const u32 last = static_cast<u32>(run.plan.groups.size()) - 1;
  list_operands(run, last);
  run_group(run, last);
  if (options_.check_validity) check_finite(run, last, last + 1);
  ++stats.nodes;
  ++stats.batches;
  ++stats.lower_bound;
  count_products(before);
}

// What an event says of a batch.
void Runner::describe(TraceScope& trace, const Run& run, const Group& group) const {
  if (!trace.on()) return;
  const PlanType& type = run.plan.types[group.type];
  const Signature& sig = g_.sig(type.sig);
  for (u32 o = 0; o < type.slabs(sig); ++o)
    if (o > 0 || !type.uneven) trace.event.floats += g_.out_size(type.sig, o) * group.count;
  for (u32 m = 0; m < group.count && type.uneven; ++m)
    trace.event.floats += g_.dim(run.plan.order[group.begin + m]).size();
  trace.event.op = sig.op;
  trace.event.members = group.count;
  trace.event.lane = run.lane;
}

// Room for the operands of all groups from this one on. Rows of several members point into it, so it must not grow once
// it has such.
void Runner::list_operands(Run& run, u32 from) const {
  Operands& o = run.operands;
  u32 n = static_cast<u32>(o.ids.size());
  for (u32 k = from; k < run.plan.groups.size(); ++k) {
    const Group& group = run.plan.groups[k];
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
  if (shares_calls) since += intra_op_->take_counts();
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
  call_forward(f, group.count);
}

void Runner::call_forward(const CallFrame& f, u32 members) {
  Timer timer(options_.profile);
  if (!shares_calls || !intra_op_->forward(f.call, team())) backend_->forward(f.call);
  if (!options_.profile) return;
  OpProfile& p = profile[g_.sig(f.sig).op];
  p.forward += timer.lap();
  ++p.calls;
  p.members += members;
}

namespace {

template <class T>
void take(char*& from, T*& to, std::size_t n) {
  to = reinterpret_cast<T*>(from);
  from += n * sizeof(T);
}

}  // namespace

// Memory for all that a call points to but lists of members: in one piece.
Runner::CallShapes Runner::take_arrays(CallFrame& f, u32 outputs, bool own_dims) {
  const std::size_t rows = 2 * (f.nargs + outputs), flags = 2 * f.nargs;
  char* at = static_cast<char*>(lists_->alloc_bytes(rows * sizeof(Rows) + f.nargs * sizeof(Dim*) +
                                                    (own_dims ? outputs * sizeof(Dim) : 0) + flags));
  CallShapes shapes{};
  take(at, f.x, f.nargs);
  take(at, f.y, outputs);
  take(at, f.dy, outputs);
  take(at, f.dx, f.nargs);
  take(at, shapes.arg_dim, f.nargs);
  if (own_dims) take(at, shapes.out_dim, outputs);
  take(at, shapes.shared, f.nargs);
  take(at, f.acc, f.nargs);
  return shapes;
}

// Everything of a call but the arguments: outputs, attributes, dims. A bundle's items are members.
void Runner::begin_call(CallFrame& f, const Run& run, u32 type_index, const NodeId* members, u32 count, u32 slot) {
  const PlanType& type = run.plan.types[type_index];
  const Signature& sig = g_.sig(type.sig);
  const OpDef& op = op_def(sig.op);
  f.sig = type.sig;
  f.nargs = sig.call_nargs;
  f.items = sig.items;
  const CallShapes shapes = take_arrays(f, sig.total, sig.total > 1 || f.items > 1 || type.ragged);
  for (u32 j = 0; j < f.nargs; ++j) {
    shapes.arg_dim[j] = &g_.dim_by_id(g_.arg_dim(type.sig, members[0], j));
    shapes.shared[j] = g_.arg_shared(type.sig, j);
  }
  for (u32 o = 0; shapes.out_dim && o < sig.total; ++o) {
    shapes.out_dim[o] = g_.dim_by_id(sig.dim[o]);
    if (f.items > 1) shapes.out_dim[o].bd = 1;
  }
  Call& c = f.call;
  c.out_dim = shapes.out_dim ? shapes.out_dim : &g_.dim_by_id(sig.dim[0]);
  for (u32 o = 0; o < type.slabs(sig); ++o)
    f.y[o] = f.dy[o] = Rows{nullptr, static_cast<std::ptrdiff_t>(c.out_dim[o].size()), nullptr};
  place_call(f, run, type, count, slot);
  if (type.ragged) make_ragged(f, shapes, run, type, members, count);
  const Word** member = nullptr;
  if (op.has_member_attrs) {
    member = lists_->array<const Word*>(count * f.items);
    for (u32 m = 0; m < count; ++m)  // of a bundle a list: its length, then a word per item, which finds its own at 1
      for (u32 e = 0; e < f.items; ++e) member[m * f.items + e] = g_.member(members[m]) + e;
  }
  c.op = &op;
  c.nargs = static_cast<int>(f.nargs);
  c.arg_dim = shapes.arg_dim;
  c.n_outputs = static_cast<int>(sig.total);
  c.visible = static_cast<int>(sig.visible);
  c.partial = sig.partial;
  c.x = f.x;
  c.shared = shapes.shared;
  c.y = f.y;
  c.key = g_.key(type.sig);
  c.member = member;
  c.scratch = &scratch_;
  c.over = type.over;
  c.of_signature = static_cast<int>(type.count * f.items);
  c.signature = type.sig;
  c.dy = f.dy;
}

// What differs between calls of a type whose members have no lists: how many there are, and where their outputs lie,
// which are packed from `slot` on. Gradients of arguments are wanted nowhere yet.
void Runner::place_call(CallFrame& f, const Run& run, const PlanType& type, u32 count, u32 slot) const {
  f.call.members = static_cast<int>(count * f.items);
  const u32 slabs = type.slabs(g_.sig(f.sig));
  for (u32 o = 0; o < slabs; ++o) {
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(type.value[o]) + slot * f.items * f.y[o].stride;
    f.y[o].base = run.value_base + at;
    f.dy[o].base = run.grad_base ? run.grad_base + at : nullptr;
  }
  f.call.dx = nullptr;
  f.call.acc = nullptr;
}

// Members of several signatures: whose dims are whose, and where their values lie. They may happen to be alike.
void Runner::make_ragged(CallFrame& f, const CallShapes& shapes, const Run& run, const PlanType& type,
                         const NodeId* members, u32 count) {
  Arena& a = *lists_;
  const u32 first = g_.node(members[0]).sig;
  bool alike = true;
  for (u32 m = 1; m < count; ++m) alike &= g_.node(members[m]).sig == first;
  auto dim = [&](NodeId i, u32 j) { return &g_.dim_by_id(g_.arg_dim(g_.node(i).sig, i, j)); };
  for (u32 j = 0; j < f.nargs; ++j) shapes.arg_dim[j] = dim(members[0], j);
  shapes.out_dim[0] = g_.dim(members[0]);
  if (!alike) {
    const Dim** at = a.array<const Dim*>(count * (f.nargs + 1));
    f.call.dims = at;
    for (u32 m = 0; m < count; ++m) {
      for (u32 j = 0; j < f.nargs; ++j) *at++ = dim(members[m], j);
      *at++ = &g_.dim(members[m]);
    }
  }
  if (!type.uneven) return;
  float** value = a.array<float*>(count);
  float** grad = a.array<float*>(count);
  const std::ptrdiff_t shift = run.grad_base - run.value_base;
  for (u32 m = 0; m < count; ++m) {
    value[m] = g_.value(members[m]);
    grad[m] = value[m] + (run.grad_base ? shift : 0);
  }
  f.y[0] = Rows::of(value, count);
  f.dy[0] = run.grad_base ? Rows::of(grad, count) : Rows{};
}

// Where the arguments of a group lie; noted for backward.
void Runner::find_arguments(CallFrame& f, Run& run, u32 group, const NodeId* members) {
  Operands& o = run.operands;
  const u32 count = static_cast<u32>(f.call.members);
  u32 stacked = 0;
  for (u32 j = 0; j < f.nargs; ++j) {
    Operands::Arg& arg = o.arg(group, j);
    if (f.call.shared[j]) {
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
    f.x[j] = arg.rows = Rows::of(at, count);
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

// Argument j of the items of bundles; it is number `stacked` among those that are stacked.
void Runner::list_items(const CallFrame& f, u32 j, u32 stacked, const NodeId* members, NodeId* to) const {
  u32 each = 0;  // arguments of an item
  for (u32 i = 0; i < f.nargs; ++i) each += !f.call.shared[i];
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

}  // namespace dnl
