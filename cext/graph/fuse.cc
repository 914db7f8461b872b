#include "graph/fuse.h"

#include "graph/affine.h"

namespace dnl {
namespace {

constexpr std::size_t kLeastSize = 8;  // floats; sums of losses stay what they are

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

bool Fuser::possible(const Backend& backend) {
  for (const char* name : {"_fused", "_fused_with_constants", "_affines1", "_affines2", "_affines3", "_affine_loss", "_affine_parts",
                           "_product_parts", "_products", "_attention_scores"})
    if (!backend.supports(op_by_name(name))) return false;
  return true;
}

void Fuser::begin(const Graph& g, NodeId from) {
  from_ = from;
  size_.assign(g.size() - from, Size{0, 0});
  list_.assign(g.size() - from, 0);
  kinds_.clear();
  know_signatures(g);
  seen_.clear();
  roots_.clear();
  any_taken_ = false;
  sums_.begin(g, from);
  losses_.begin(from);
  attention_.begin(from);
  concats_.begin(from);
  bundler_.begin(from);
}

// Rewriting makes new ones.
void Fuser::know_signatures(const Graph& g) {
  const std::size_t known = kinds_.size();
  kinds_.resize(g.signatures());
  for (std::size_t s = known; s < kinds_.size(); ++s) kinds_[s].sort = Kind::kUnknown;
}

// Losses take W * x + b as it is, with less work than as the affine map that it would become.
void Fuser::look_first(Graph& g) {
  u8 list = 0;
  for (NodeId i : seen_) {
    if (i == kNoNode) {
      ++list;
      continue;
    }
    list_[i - from_] = list;
    if (kind(g, g.node(i).sig).sort == Kind::kLoss && g.is_op(i) && !g.node(i).is(kInner)) losses_.see(g, i);
  }
}

void Fuser::consider(Graph& g, NodeId i) {
  const Kind& k = kind(g, g.node(i).sig);
  if (k.sort == Kind::kOther) return;
  if (k.sort != Kind::kElementwise) bundler_.see(g, i);
  if (k.sort == Kind::kLoss) return;
  if (k.sort == Kind::kProduct) return attention_.see(g, i) ? void() : concats_.see_product(g, i);
  if (k.sort == Kind::kConcatenation) return concats_.see_concatenation(g, i);
  if (g.node(i).is(kInner)) return;
  if (take_in(g, i)) roots_.push_back(i);
}

bool Fuser::finish(Graph& g) {
  look_first(g);
  const bool any_sums = sums_.finish(g, list_);
  know_signatures(g);
  joiner_.begin(g, from_);
  for (NodeId i : seen_) {
    if (i == kNoNode) roots_.push_back(kNoNode);
    else if (g.is_op(i)) consider(g, i);
  }
  bool any = any_sums | losses_.finish(g) | attention_.finish(g) | any_taken_;
  if (!roots_.empty()) any |= write_programs(g);
  any |= concats_.finish(g);
  return bundler_.finish(g) | any;
}

// Of all trees. Are any maps joined?
bool Fuser::write_programs(Graph& g) {
  programs_.clear();
  inputs_.clear();
  steps_.clear();
  constants_.clear();
  for (NodeId i : roots_) {
    if (i == kNoNode) joiner_.end_list();
    else if (!g.node(i).is(kFused)) write_program(g, i);
  }
  const bool joined = joiner_.join(g);
  for (const Program& p : programs_) rewrite(g, p);
  return joined;
}

// Elementwise ops whose arguments have the shape of the result.
Fuser::Kind Fuser::judge(const Graph& g, u32 s) {
  const Signature& sig = g.sig(s);
  const bool sum = SumFolder::is_sum(sig);
  const Kind other{Kind::kOther, Formula::None, 0, 0, false, sum};
  if (LossFolder::is_loss(sig)) return {Kind::kLoss, Formula::None, 0, 0, false, false};
  if (is_affine(sig)) return {Kind::kProduct, Formula::None, 0, 0, false, false};
  if (ConcatFolder::is_concatenation(sig)) return {Kind::kConcatenation, Formula::None, 0, 0, false, false};
  if (sig.leaf != Leaf::None || sig.alias) return other;
  const OpDef& op = op_def(sig.op);
  if (op.formula == Formula::None || g.dim_by_id(sig.dim[0]).size() < kLeastSize) return other;
  if (sig.nargs > 8 || (sig.nargs == 1 && op.formula == Formula::Sum)) return other;
  for (u32 j = 0; j < sig.nargs; ++j)
    if (g.arg_shared(s, j) || g.stacked_dim(s, j) != sig.dim[0]) return other;
  return {Kind::kElementwise, op.formula, op.formula_id, static_cast<u8>(op.attrs.size()), op.reads_value_only, sum};
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
      of_use |= joiner_.joinable(g, a);
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

void Fuser::write_program(const Graph& g, NodeId root) {
  programs_.push_back({root, static_cast<u32>(inputs_.size()), 0, static_cast<u32>(steps_.size()), 0,
                       static_cast<u32>(constants_.size()), 0});
  steps_of(g, root);
}

// The number by which steps refer to node i.
u32 Fuser::operand(const Graph& g, NodeId i) {
  if (g.node(i).is(kFused)) return steps_of(g, i);
  Program& p = programs_.back();
  for (u32 k = 0; k < p.inputs; ++k)
    if (inputs_[p.input + k].node == i) return k;
  const bool here = i >= from_ && same_list(i, p.root);
  inputs_.push_back({i, here && joiner_.fits(g, i) ? joiner_.offer(g, i) : kNoNode});
  return p.inputs++;
}

// Appends what gives the value of node i; the number of the result.
u32 Fuser::steps_of(const Graph& g, NodeId i) {
  const Kind kind = kinds_[g.node(i).sig];
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
      if (joined(in)) g.set_readers(part.node, g.readers(part.node) + 1);
    }
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
