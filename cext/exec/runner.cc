// Running a plan forward: calls are put together group by group. Backward is in runner_backward.cc.
#include "exec/runner.h"

#include "exec/frame.h"
#include "exec/timer.h"
#include "kernels/gemm.h"

namespace dnl {

Runner::Runner(Graph& graph, Backend* backend, const ExecOptions& options)
    : profile(op_count()), g_(graph), backend_(backend), options_(options) {}

void Runner::forward(const Run& run) {
  const ProductCopies before = product_copies();
  for (const Group& group : run.plan.groups) {
    {
      TraceScope trace(Phase::ForwardBatch, &g_);
      describe(trace, run, group);
      run_group(run, group);
    }
    if (options_.check_validity) check_finite(run, group);
  }
  stats.nodes += run.plan.exec.size();
  stats.batches += run.plan.groups.size();
  stats.lower_bound += run.plan.lower_bound;
  count_copies(before);
}

// What an event says of a batch.
void Runner::describe(TraceScope& trace, const Run& run, const Group& group) const {
  if (!trace.on()) return;
  const Signature& sig = g_.sig(run.plan.types[group.type].sig);
  for (u32 o = 0; o < sig.total; ++o) trace.event.floats += g_.dim_by_id(sig.dim[o]).size() * group.count;
  trace.event.op = sig.op;
  trace.event.members = group.count;
  trace.event.lane = run.lane;
}

// What products of this thread copied since then.
void Runner::count_copies(const ProductCopies& before) {
  const ProductCopies now = product_copies();
  stats.floats_gathered += now.gathered - before.gathered;
  stats.floats_scattered += now.scattered - before.scattered;
}

void Runner::run_group(const Run& run, const Group& group) {
  scratch_.arena.reset();
  CallFrame f;
  const NodeId* members = run.plan.order.data() + group.begin;
  begin_call(f, run, group.type, members, group.count, group.slot);
  for (u32 j = 0; j < f.nargs; ++j) argument(f, j, members);
  if (!options_.profile) return backend_->forward(f.call);
  Timer timer;
  backend_->forward(f.call);
  OpProfile& p = profile[g_.sig(f.sig).op];
  p.forward += timer.lap();
  ++p.calls;
  p.members += group.count;
}

// Everything of a call but the arguments: outputs, attributes, dims. Outputs are packed from `slot` on.
void Runner::begin_call(CallFrame& f, const Run& run, u32 type_index, const NodeId* members, u32 count, u32 slot) {
  const PlanType& type = run.plan.types[type_index];
  const Signature& sig = g_.sig(type.sig);
  Arena& a = scratch_.arena;
  f.sig = type.sig;
  f.nargs = sig.nargs;
  f.op = &op_def(sig.op);
  f.arg_dim = a.array<const Dim*>(sig.nargs + 1);
  f.shared = a.array<bool>(sig.nargs + 1);
  f.x = a.array<Rows>(sig.nargs + 1);
  for (u32 j = 0; j < sig.nargs; ++j) {
    f.arg_dim[j] = &g_.dim_by_id(g_.arg_dim(type.sig, members[0], j));
    f.shared[j] = g_.arg_shared(type.sig, j);
  }
  for (u32 o = 0; o < sig.total; ++o) {
    f.out_dim[o] = g_.dim_by_id(sig.dim[o]);
    const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(f.out_dim[o].size());
    f.y[o] = Rows{run.value_base + type.value[o] + slot * size, size, nullptr};
    f.dy[o] = run.grad_base ? Rows{run.grad_base + type.value[o] + slot * size, size, nullptr} : Rows{};
  }
  const Word** member = nullptr;
  if (f.op->has_member_attrs) {
    member = a.array<const Word*>(count);
    for (u32 m = 0; m < count; ++m) member[m] = g_.member(members[m]);
  }
  Call& c = f.call;
  c.op = f.op;
  c.members = static_cast<int>(count);
  c.nargs = static_cast<int>(sig.nargs);
  c.arg_dim = f.arg_dim;
  c.out_dim = f.out_dim;
  c.x = f.x;
  c.shared = f.shared;
  c.y = f.y;
  c.key = g_.key(type.sig);
  c.member = member;
  c.scratch = &scratch_;
  c.dy = f.dy;
  c.dx = nullptr;
  c.acc = nullptr;
}

// Argument j of all members: shared, or where they lie.
void Runner::argument(CallFrame& f, u32 j, const NodeId* members) {
  if (f.shared[j]) {
    f.x[j] = Rows{g_.value(g_.shared_arg(f.sig, j)), 0, nullptr};
    return;
  }
  const std::size_t k = static_cast<std::size_t>(f.call.members);
  float** address = scratch_.arena.array<float*>(k);
  for (std::size_t m = 0; m < k; ++m) address[m] = g_.value(g_.operands(members[m])[j]);
  f.x[j] = rows_from(address, k);
}

void Runner::check_finite(const Run& run, const Group& group) {
  const PlanType& type = run.plan.types[group.type];
  const std::size_t size = g_.dim_by_id(g_.sig(type.sig).dim[0]).size();
  const float* p = run.value_base + type.value[0] + group.slot * size;
  if (backend_->all_finite(size * group.count, p)) return;
  for (u32 m = 0; m < group.count; ++m)
    if (!backend_->all_finite(size, p + m * size)) throw NotFiniteError(run.plan.order[group.begin + m], g_);
}

}  // namespace dnl
