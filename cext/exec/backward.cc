// Gradients: the plans in reverse.
//
// A gradient's memory is not cleared: state_ says whether anything was written. A call whose targets are all fresh and
// distinct assigns; all old, adds; a mixture clears the fresh ones first and adds.
#include "exec/executor.h"
#include "exec/frame.h"
#include "exec/timer.h"

namespace dnl {

void Executor::backward(NodeId loss, bool full) {
  forward();
  Timer timer;
  if (g_.dim(loss).size() != 1)
    fail_value("[backward] needs a scalar; got " + g_.dim(loss).text() + " (sum it first: sum_elems, sum_batches)");
  reach(loss, full);
  place_gradients(loss);
  graded_ = loss + 1;
  if (grad_[loss]) {
    const NodeId root = g_.node(loss).root;
    if (g_.node(loss).is(kPartial)) first_write(root);
    float one = 1.f;
    if (state_[root] == kAlways || g_.node(loss).is(kPartial))
      backend_->add_rows(1, 1, Rows{&one, 1, nullptr}, Rows{grad_[loss], 1, nullptr});
    else
      backend_->fill(1, 1.f, grad_[loss]);
    if (!state_[root]) state_[root] = ++serial_;
    for (std::size_t r = n_plans_; r-- > 0;) {
      const Run& run = *runs_[r];
      if (run.first > loss) continue;
      for (std::size_t k = run.plan.groups.size(); k-- > 0;) back_group(run, run.plan.groups[k]);
    }
    collect_lookups(loss);
  }
  stats.backward_time += timer.lap();
}

// Which nodes the loss depends on and want a gradient.
void Executor::reach(NodeId loss, bool full) {
  reached_.assign(loss + 1, 0);
  auto wants = [&](NodeId i) { return full ? !g_.signature(i).no_grad : g_.node(i).is(kNeedsGrad); };
  if (!wants(loss)) return;
  reached_[loss] = 1;
  for (NodeId i = loss + 1; i-- > 0;) {
    if (!reached_[i]) continue;
    const Node& n = g_.node(i);
    if (n.is(kLeaf)) continue;
    if (n.is(kOutput)) { reached_[n.producer] = 1; continue; }
    const NodeId* args = g_.operands(i);
    const u32 nargs = n.is(kAlias) ? 1 : g_.nargs(i);
    for (u32 j = 0; j < nargs; ++j)
      if (wants(args[j])) reached_[args[j]] = 1;
  }
}

// An address for the gradient of each node reached.
void Executor::place_gradients(NodeId loss) {
  grads_.reset();
  grad_.assign(loss + 1, nullptr);
  state_.assign(loss + 1, 0);
  serial_ = 0;
  // Slots of lookup rows first: their array may move while it grows.
  for (NodeId i = 0; i <= loss; ++i) {
    if (!reached_[i] || g_.signature(i).leaf != Leaf::Lookup) continue;
    LookupTable& t = *g_.table(g_.signature(i).table);
    if (g_.dim(i).bd == 1 && g_.node(i).is(kNeedsGrad)) t.slot(*g_.lookup_ids(i));
  }
  for (NodeId i = 0; i <= loss; ++i) {
    if (!reached_[i] || !g_.node(i).is(kLeaf)) continue;
    const Signature& s = g_.signature(i);
    if (s.leaf == Leaf::Param && g_.node(i).is(kNeedsGrad)) {
      Parameter& p = *g_.parameter(i);
      p.touched = true;
      grad_[i] = p.grad.data();
      state_[i] = kAlways;
    } else if (s.leaf == Leaf::Lookup && g_.dim(i).bd == 1 && g_.node(i).is(kNeedsGrad)) {
      LookupTable& t = *g_.table(s.table);
      grad_[i] = t.slot_grad(t.slot(*g_.lookup_ids(i)));
      state_[i] = kAlways;
    } else {
      grad_[i] = grads_.floats(g_.dim(i).size());
    }
  }
  for (std::size_t r = 0; r < n_plans_; ++r) {
    Run& run = *runs_[r];
    if (run.first > loss) break;
    run.grad_base = grads_.floats(run.plan.floats ? run.plan.floats : 1);
    const std::ptrdiff_t shift = run.grad_base - run.value_base;
    for (NodeId i = run.first; i < run.last && i <= loss; ++i)
      if (reached_[i] && !g_.node(i).is(kLeaf | kAlias)) grad_[i] = g_.value(i) + shift;
  }
  for (NodeId i = 0; i <= loss; ++i) {
    const Node& n = g_.node(i);
    if (reached_[i] && n.is(kAlias) && !g_.signature(i).no_grad && grad_[n.root]) grad_[i] = grad_[n.root] + n.offset;
  }
}

bool Executor::active(NodeId i) const {
  if (i >= reached_.size()) return false;
  const u32 visible = g_.signature(i).visible;
  for (u32 o = 0; o < visible && i + o < reached_.size(); ++o)
    if (reached_[i + o] && state_[i + o]) return true;
  return false;
}

void Executor::back_group(const Run& run, const Group& group) {
  const PlanType& type = run.plan.types[group.type];
  const OpDef& op = op_def(g_.sig(type.sig).op);
  const NodeId* members = run.plan.order.data() + group.begin;
  if (op.backward) {
    for (u32 from = 0; from < group.count;) {
      if (!active(members[from])) { ++from; continue; }
      u32 to = from + 1;
      while (to < group.count && active(members[to])) ++to;
      back_members(run, group, from, to - from);
      from = to;
    }
  }
  if (op.backward_shared && &group == &run.plan.groups[type.first_group]) back_shared(run, group.type);
}

// Stacked arguments of consecutive members of a group.
void Executor::back_members(const Run& run, const Group& group, u32 from, u32 count) {
  scratch_.arena.reset();
  CallFrame f;
  const NodeId* members = run.plan.order.data() + group.begin + from;
  begin_call(f, run, group.type, members, count, group.slot + from);
  zero_unwritten_outputs(f, members, count);
  if (!targets(f, members) && !f.op->backward_shared) return;
  for (u32 j = 0; j < f.nargs; ++j) argument(f, j, members);
  if (!options.profile) {
    backend_->backward(f.call);
    return scatter_targets(f);
  }
  Timer timer;
  backend_->backward(f.call);
  scatter_targets(f);
  profile[g_.sig(f.sig).op].backward += timer.lap();
}

// An output that nothing flowed into has an undefined gradient: it is zero.
void Executor::zero_unwritten_outputs(CallFrame& f, const NodeId* members, u32 count) {
  const u32 visible = g_.sig(f.sig).visible;
  for (u32 o = 0; o < visible; ++o)
    for (u32 m = 0; m < count; ++m) {
      const NodeId i = members[m] + o;
      if (i >= reached_.size() || !state_[i]) backend_->fill(f.out_dim[o].size(), 0.f, f.dy[o][m]);
    }
}

void Executor::first_write(NodeId root) {
  if (state_[root]) return;
  backend_->fill(g_.dim(root).size(), 0.f, grad_[root]);
  state_[root] = ++serial_;
}

// Where the gradients of all stacked arguments go. False: nobody wants any.
bool Executor::targets(CallFrame& f, const NodeId* members) {
  Arena& a = scratch_.arena;
  f.dx = a.array<Rows>(f.nargs + 1);
  f.acc = a.array<bool>(f.nargs + 1);
  f.scatter = a.array<CallFrame::Scatter>(f.nargs + 1);
  f.target = a.array<CallFrame::Target>(f.nargs + 1);
  f.call.dx = f.dx;
  f.call.acc = f.acc;
  fresh_roots_.clear();
  fresh_begin_.resize(f.nargs + 1);
  ++serial_;
  bool wanted = false;
  for (u32 j = 0; j < f.nargs; ++j) {
    f.dx[j] = Rows{};
    f.acc[j] = true;
    f.scatter[j].needed = false;
    f.target[j] = {0, 0};
    fresh_begin_[j] = static_cast<u32>(fresh_roots_.size());
    if (f.shared[j]) continue;
    target(f, j, members);
    wanted |= f.dx[j].wanted();
  }
  fresh_begin_[f.nargs] = static_cast<u32>(fresh_roots_.size());
  for (u32 j = 0; j < f.nargs; ++j)
    if (f.dx[j].wanted()) settle_target(f, j);
  return wanted;
}

// Collects the addresses of one argument's gradients and what is known of their state.
void Executor::target(CallFrame& f, u32 j, const NodeId* members) {
  const u32 k = static_cast<u32>(f.call.members);
  float** address = scratch_.arena.array<float*>(k);
  float* nowhere = nullptr;  // members whose argument wants no gradient write here
  u32 wanted = 0;
  for (u32 m = 0; m < k; ++m) {
    const NodeId a = g_.operands(members[m])[j];
    float* p = a < grad_.size() ? grad_[a] : nullptr;
    if (!p) {
      if (!nowhere) nowhere = scratch_.arena.floats(f.arg_dim[j]->size());
      address[m] = nowhere;
      continue;
    }
    ++wanted;
    address[m] = p;
    const Node& n = g_.node(a);
    u32& state = state_[n.root];
    if (state == 0) {
      state = serial_;
      fresh_roots_.push_back(n.root);
      ++f.target[j].fresh;
      f.repeated |= n.is(kPartial);
    } else {
      f.repeated |= state == serial_;
      ++f.target[j].old;
    }
  }
  if (wanted) f.dx[j] = rows_from(address, k);
}

// Decides between assigning and adding, and sends a dense target through scratch memory where its rows do not fit.
void Executor::settle_target(CallFrame& f, u32 j) {
  const CallFrame::Target& t = f.target[j];
  bool acc = t.old > 0 || f.repeated;
  if (acc)
    for (u32 r = fresh_begin_[j]; r < fresh_begin_[j + 1]; ++r)
      backend_->fill(g_.dim(fresh_roots_[r]).size(), 0.f, grad_[fresh_roots_[r]]);
  const std::size_t k = static_cast<std::size_t>(f.call.members);
  const Dim& d = *f.arg_dim[j];
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(d.size());
  if (f.op->arg_spec(static_cast<int>(j)).access == Access::Dense) {
    if (!is_dense(f.dx[j], k, d)) {
      f.scatter[j] = {f.dx[j], acc, true};
      f.dx[j] = Rows{scratch_.arena.floats(k * size), size, nullptr};
      acc = false;
    } else if (k == 1) {
      f.dx[j].stride = size;
    }
  }
  f.acc[j] = acc;
}

void Executor::scatter_targets(CallFrame& f) {
  const std::size_t k = static_cast<std::size_t>(f.call.members);
  for (u32 j = 0; j < f.nargs; ++j) {
    if (!f.scatter[j].needed) continue;
    const std::size_t size = f.arg_dim[j]->size();
    stats.floats_scattered += k * size;
    if (f.scatter[j].acc)
      backend_->add_rows(k, size, f.dx[j], f.scatter[j].to);
    else
      backend_->copy_rows(k, size, f.dx[j], f.scatter[j].to);
  }
}

// Shared arguments of a whole type, once all its groups have their stacked gradients.
void Executor::back_shared(const Run& run, u32 type_index) {
  const PlanType& type = run.plan.types[type_index];
  bool wanted = false;
  for (u32 j = 0; j < g_.sig(type.sig).nargs && !wanted; ++j) {
    if (!g_.arg_shared(type.sig, j)) continue;
    const NodeId a = g_.shared_arg(type.sig, j);
    wanted = a < grad_.size() && grad_[a];
  }
  if (!wanted) return;
  type_members_.clear();
  for (u32 k = type.first_group; type_members_.size() < type.count; ++k) {
    const Group& group = run.plan.groups[k];
    if (group.type != type_index) continue;
    const NodeId* from = run.plan.order.data() + group.begin;
    std::memcpy(type_members_.extend(group.count), from, group.count * sizeof(NodeId));
  }
  for (u32 from = 0; from < type.count;) {
    if (!active(type_members_[from])) { ++from; continue; }
    u32 to = from + 1;
    while (to < type.count && active(type_members_[to])) ++to;
    back_shared_members(run, type_index, type_members_.data() + from, to - from, from);
    from = to;
  }
}

void Executor::back_shared_members(const Run& run, u32 type, const NodeId* members, u32 count, u32 slot) {
  scratch_.arena.reset();
  CallFrame f;
  begin_call(f, run, type, members, count, slot);
  for (u32 j = 0; j < f.nargs; ++j) argument(f, j, members);
  f.dx = scratch_.arena.array<Rows>(f.nargs + 1);
  f.acc = scratch_.arena.array<bool>(f.nargs + 1);
  f.call.dx = f.dx;
  f.call.acc = f.acc;
  for (u32 j = 0; j < f.nargs; ++j) {
    f.dx[j] = Rows{};
    f.acc[j] = true;
    if (f.shared[j]) {
      const NodeId a = g_.shared_arg(f.sig, j);
      if (a >= grad_.size() || !grad_[a]) continue;
      first_write(g_.node(a).root);
      f.dx[j].base = grad_[a];
    } else if (j == 0 && f.op->keep_arg) {
      float** address = scratch_.arena.array<float*>(count);
      for (u32 m = 0; m < count; ++m) address[m] = grad_[g_.operands(members[m])[0]];
      f.dx[0] = rows_from(address, count);
    }
  }
  Timer timer;
  for (u32 j = 0; j < f.nargs; ++j)
    if (f.shared[j] && f.dx[j].wanted()) backend_->backward_shared(f.call, static_cast<int>(j));
  if (options.profile) profile[g_.sig(f.sig).op].backward += timer.lap();
}

// Gradients of lookups of several rows, and of whole tables, go to the slots of their rows.
void Executor::collect_lookups(NodeId loss) {
  for (NodeId i = 0; i <= loss; ++i) {
    if (!reached_[i] || !state_[i] || state_[i] == kAlways || !g_.node(i).is(kNeedsGrad)) continue;
    const Leaf leaf = g_.signature(i).leaf;
    if (leaf != Leaf::Lookup && leaf != Leaf::Table) continue;
    LookupTable& t = *g_.table(g_.signature(i).table);
    const u32 n = leaf == Leaf::Table ? t.rows : g_.dim(i).bd;
    for (u32 k = 0; k < n; ++k) {
      const u32 row = leaf == Leaf::Table ? k : g_.lookup_ids(i)[k];
      float* to = t.slot_grad(t.slot(row));
      const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(t.row_size);
      backend_->add_rows(1, t.row_size, Rows{grad_[i] + k * t.row_size, size, nullptr}, Rows{to, size, nullptr});
    }
  }
}

bool Executor::read_gradient(NodeId i, float* to) {
  if (i >= graded_) return false;
  const std::size_t n = g_.dim(i).size();
  if (grad_[i] && state_[g_.node(i).root])
    backend_->download(n, grad_[i], to);
  else
    std::memset(to, 0, n * sizeof(float));
  return true;
}

}  // namespace dnl
