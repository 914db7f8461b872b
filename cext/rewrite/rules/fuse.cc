#include "rewrite/rules/fuse.h"

namespace dnl {
namespace {

// Constants of the formulas are member attributes, so that they need not be equal; most programs have none.
OpId plain_op() {
  static const OpId id = op_by_name("_fused");
  return id;
}
OpId op_with_constants() {
  static const OpId id = op_by_name("_fused_with_constants");
  return id;
}

}  // namespace

void Fuser::begin(const Graph& g, NodeId from, bool joins) {
  from_ = from;
  joins_ = joins;
  size_.assign(g.size() - from, Size{0, 0});
  any_taken_ = false;
  seen_.clear();
  roots_.clear();
  programs_.clear();
  inputs_.clear();
  steps_.clear();
  constants_.clear();
}

bool Fuser::find(Graph& g) {
  joiner_.begin(g, from_);
  for (NodeId i : seen_)
    if (i == kNoNode || (g.is_op(i) && take_in(g, i))) roots_.push_back(i);
  for (NodeId i : roots_) {
    if (i == kNoNode) joiner_.end_list();
    else if (!g.node(i).is(kFused)) gather(g, i);
  }
  return any_taken_;
}

void Fuser::write(Graph& g) {
  for (const Program& p : programs_) rewrite(g, p);
}

// Marks those arguments of i that run inside it, as far as there is room. Is there any, or one that may be joined?
bool Fuser::take_in(Graph& g, NodeId i) {
  const u32 nargs = g.nargs(i);
  u32 steps = nargs < 2 ? 1 : nargs - 1, inputs = nargs;
  bool of_use = false;
  const NodeId* args = g.operands(i);
  for (u32 j = 0; j < nargs; ++j) {
    const NodeId a = args[j];
    if (a < from_ || !g.private_to_reader(a)) continue;
    const Size& under = size_[a - from_];
    if (!same_list(a, i)) continue;  // parts of a joined node are read where it runs
    if (!under.steps) {
      of_use |= joins_ && joiner_.joinable(g, a);
      continue;
    }
    if (steps + under.steps > fused::kMaxSteps || inputs - 1 + under.inputs > fused::kMaxInputs) continue;
    steps += under.steps;
    inputs += under.inputs - 1u;
    g.mark_fused(a, i);
    of_use = any_taken_ = true;
  }
  size_[i - from_] = {static_cast<u8>(steps), static_cast<u8>(inputs)};
  return of_use;
}

// ---- the program of a tree of ops --------------------------------------------------------------------------------

void Fuser::gather(const Graph& g, NodeId root) {
  programs_.push_back({root, static_cast<u32>(inputs_.size()), 0, static_cast<u32>(steps_.size()), 0,
                       static_cast<u32>(constants_.size()), 0});
  steps_of(g, root);
}

// The number by which steps refer to node i.
u32 Fuser::operand(const Graph& g, NodeId i) {
  if (g.node(i).is(kFused)) return steps_of(g, i);
  Program& p = programs_.back();
  for (u32 k = 0; k < p.inputs; ++k)
    if (inputs_[p.input + k].node == i) return ++inputs_[p.input + k].reads, k;
  const bool here = i >= from_ && same_list(i, p.root);
  inputs_.push_back({i, here && joins_ && joiner_.fits(g, i) ? joiner_.offer(g, i) : kNoNode, 1});
  return p.inputs++;
}

// Appends what gives the value of node i; the number of the result.
u32 Fuser::steps_of(const Graph& g, NodeId i) {
  const Kind kind = kinds_.known(g, i);
  const NodeId* args = g.operands(i);
  u32 a = operand(g, args[0]);
  if (kind.formula == Formula::Sum) {
    static const u8 addition = op_def(op_by_name("add")).formula_id;
    for (u32 j = 1, n = g.nargs(i); j < n; ++j) {
      const u32 b = operand(g, args[j]);
      a = add_step({addition, true, static_cast<u8>(a), static_cast<u8>(b)});
    }
    return a;
  }
  const bool binary = kind.formula == Formula::Binary;
  const u32 b = binary ? operand(g, args[1]) : 0;
  for (u32 k = 0; k < kind.constants; ++k) constants_.push_back(g.member(i)[k]);
  programs_.back().constants += kind.constants;
  return add_step({kind.id, binary, static_cast<u8>(a), static_cast<u8>(b), !binary && kind.reads_value_only});
}

u32 Fuser::add_step(const fused::Step& step) {
  Word w;
  w.u = step.word();
  steps_.push_back(w);
  return fused::kMaxInputs + programs_.back().steps++;
}

// A step of two operands may need one of them after the gradient of the other has been written.
void Fuser::keep_apart(Graph& g, const Program& p, u32 operand) {
  if (operand >= fused::kMaxInputs) return;
  const Input& in = inputs_[p.input + operand];
  if (joined(in)) g.mark_grad_apart(joiner_.part(in.offered).node);
}

// ---- the node ------------------------------------------------------------------------------------------------------

void Fuser::rewrite(Graph& g, const Program& p) {
  NodeId args[fused::kMaxInputs];
  u32 nargs = 0;
  Word key[3 + fused::kMaxSteps + 2 * fused::kMaxInputs];
  u32 nkey = 0;
  key[nkey++].u = p.steps;
  for (u32 k = 0; k < p.steps; ++k) {
    fused::Step step = fused::Step::of(steps_[p.step + k].u);
    if (step.binary) {
      keep_apart(g, p, step.a);
      keep_apart(g, p, step.b);
    }
    step.over = step.over && step.a < fused::kMaxInputs && k + 1 < p.steps && joined(inputs_[p.input + step.a]);
    key[nkey++].u = step.word();
  }
  Word& parts = key[nkey++];
  parts.u = 0;
  bool any_joined = false;
  for (u32 k = 0; k < p.inputs; ++k) any_joined |= joined(inputs_[p.input + k]);
  if (!any_joined && p.steps == 1) return;  // nothing is gained
  if (any_joined) {
    key[nkey++].u = g.dim(p.root).rows();
    parts.u = 1;
  }
  for (u32 k = 0; k < p.inputs; ++k) {
    const Input& in = inputs_[p.input + k];
    const Joiner::Part part = in.offered == kNoNode ? Joiner::Part{in.node, 0} : joiner_.part(in.offered);
    u32 j = 0;
    while (j < nargs && args[j] != part.node) ++j;
    if (j == nargs) {
      args[nargs++] = part.node;
      if (joined(in)) g.reads_once_more(part.node);
    }
    for (u32 r = 1; r < in.reads; ++r) g.reads_no_more(in.node);  // the program reads it once
    if (!any_joined) continue;
    key[nkey++].u = j;
    key[nkey++].u = part.offset;
    parts.u += 2;
  }
  Word constants[1 + 2 * fused::kMaxSteps];
  constants[0].u = p.constants;
  for (u32 k = 0; k < p.constants; ++k) constants[1 + k] = constants_[p.constant + k];
  const bool plain = p.constants == 0;
  g.replace(p.root, plain ? plain_op() : op_with_constants(), args, static_cast<int>(nargs), key, static_cast<int>(nkey),
            constants, plain ? 0 : static_cast<int>(1 + p.constants));
}

}  // namespace dnl
