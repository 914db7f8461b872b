// Fusing: chains of elementwise ops become one node.
//
// Gates written by hand are many small ops, each a pass over memory of its own: cmult(logistic(z), tanh(u)). An op that
// only one other elementwise op of the same shape reads, and that nobody else can ever ask for, is taken into that op;
// what is left is a node with the program of the whole tree of them (op/fused.h). The values are the same to the last
// bit. Chains that read joined maps have been written before (rules/join.cc).
#include "rewrite/passes.h"

namespace dnl {
namespace {

// Constants of the formulas are member attributes, so that they need not be equal; most programs have none.
struct Ops {
  OpId plain = op_by_name("_fused"), with_constants = op_by_name("_fused_with_constants");
  u8 addition = op_def(op_by_name("add")).formula_id;
};
const Ops& ops() {
  static const Ops found;
  return found;
}

// A sum may have become an affine map.
bool is_candidate(Rewriter& r, NodeId i) {
  return r.graph().is_op(i) && !r.graph().node(i).is(kInner) && r.kind(i).is(Kind::kElementwise);
}

}  // namespace

void Chains::begin() {
  begun_ = false;
  programs_.clear();
  inputs_.clear();
  absorbed_.clear();
  steps_.clear();
  constants_.clear();
}

// Finds what runs inside its reader, and gathers the programs of what is left.
void Chains::find(Rewriter& r, const Lane& lane, bool maps) {
  if (!begun_) size_.assign(r.count(), Size{0, 0, false});
  begun_ = true;
  roots_.clear();
  for (NodeId i : lane.of[Kind::kElementwise])
    if (is_candidate(r, i) && take_in(r, i, maps)) roots_.push_back(i);
  for (NodeId i : roots_)
    if (!size_[r.at(i)].taken) gather(r, i);
}

// Takes in those arguments of i that run inside it, as far as there is room. Is there any, or one that may be joined?
bool Chains::take_in(Rewriter& r, NodeId i, bool maps) {
  const Graph& g = r.graph();
  const u32 nargs = g.nargs(i);
  u32 steps = nargs < 2 ? 1 : nargs - 1, inputs = nargs;
  bool of_use = false;
  const NodeId* args = g.operands(i);
  for (u32 j = 0; j < nargs; ++j) {
    const NodeId a = args[j];
    if (!r.absorbable(a, i)) continue;
    Size& under = size_[r.at(a)];
    if (!under.steps) {
      of_use |= maps && r.kind(a).joins;
      continue;
    }
    if (steps + under.steps > fused::kMaxSteps || inputs - 1 + under.inputs > fused::kMaxInputs) continue;
    steps += under.steps;
    inputs += under.inputs - 1u;
    under.taken = true;
    of_use = true;
  }
  size_[r.at(i)] = {static_cast<u8>(steps), static_cast<u8>(inputs), false};
  return of_use;
}

// ---- the program of a tree of ops --------------------------------------------------------------------------------

void Chains::gather(Rewriter& r, NodeId root) {
  programs_.push_back({root, static_cast<u32>(inputs_.size()), 0, static_cast<u32>(absorbed_.size()),
                       static_cast<u32>(steps_.size()), 0, static_cast<u32>(constants_.size()), 0, false});
  steps_of(r, root);
}

// The number by which steps refer to node i.
u32 Chains::operand(Rewriter& r, NodeId i) {
  if (i >= r.first() && size_[r.at(i)].taken) {
    absorbed_.push_back(i);
    return steps_of(r, i);
  }
  Program& p = programs_.back();
  for (u32 k = 0; k < p.inputs; ++k)
    if (inputs_[p.input + k].node == i) return k;
  inputs_.push_back({i, kNoNode, 0});
  return p.inputs++;
}

// Appends what gives the value of node i; the number of the result.
u32 Chains::steps_of(Rewriter& r, NodeId i) {
  const Kind kind = r.kind(i);
  const Graph& g = r.graph();
  const NodeId* args = g.operands(i);
  u32 a = operand(r, args[0]);
  if (kind.formula == Formula::Sum) {
    for (u32 j = 1, n = g.nargs(i); j < n; ++j) {
      const u32 b = operand(r, args[j]);
      a = add_step({ops().addition, true, static_cast<u8>(a), static_cast<u8>(b)});
    }
    return a;
  }
  const bool binary = kind.formula == Formula::Binary;
  const u32 b = binary ? operand(r, args[1]) : 0;
  constants_.append(g.member(i), kind.constants);
  programs_.back().constants += kind.constants;
  return add_step({kind.id, binary, static_cast<u8>(a), static_cast<u8>(b), !binary && kind.reads_value_only});
}

// ---- the node ------------------------------------------------------------------------------------------------------

// A step of two operands may need one of them after the gradient of the other has been written.
void Chains::keep_apart(Rewriter& r, const Program& p, u32 operand) const {
  if (is_part(p, operand)) r.keep_gradient_apart(inputs_[p.input + operand].part_of);
}

void Chains::write_steps(Rewriter& r, const Program& p, Made& made) const {
  made.key[made.nkey++].u = p.steps;
  for (u32 k = 0; k < p.steps; ++k) {
    fused::Step step = fused::Step::of(steps_[p.step + k].u);
    if (step.binary) {
      keep_apart(r, p, step.a);
      keep_apart(r, p, step.b);
    }
    step.over = step.over && k + 1 < p.steps && is_part(p, step.a);
    made.key[made.nkey++].u = step.word();
  }
}

// Each node once; where some are read in parts, for each input which one, and where its part begins.
void Chains::write_inputs(const Graph& g, const Program& p, Made& made) const {
  Word& parts = made.key[made.nkey++];
  parts.u = p.in_parts;
  if (p.in_parts) made.key[made.nkey++].u = g.dim(p.root).rows();
  for (u32 k = 0; k < p.inputs; ++k) {
    const Input& in = inputs_[p.input + k];
    const NodeId node = in.part_of == kNoNode ? in.node : in.part_of;
    u32 j = 0;
    while (j < made.nargs && made.args[j] != node) ++j;
    if (j == made.nargs) made.args[made.nargs++] = node;
    if (!p.in_parts) continue;
    made.key[made.nkey++].u = j;
    made.key[made.nkey++].u = in.offset;
    parts.u += 2;
  }
}

bool Chains::write(Rewriter& r, u32 c) {
  const Program& p = programs_[c];
  if (p.steps == 1 && !p.in_parts) return false;
  const u32 absorbed_end = c + 1 < count() ? programs_[c + 1].absorbed : static_cast<u32>(absorbed_.size());
  Made made;
  write_steps(r, p, made);
  write_inputs(r.graph(), p, made);
  for (u32 k = p.absorbed; k < absorbed_end; ++k) r.absorb(absorbed_[k], p.root);
  Word constants[1 + 2 * fused::kMaxSteps];
  constants[0].u = p.constants;
  for (u32 k = 0; k < p.constants; ++k) constants[1 + k] = constants_[p.constant + k];
  const bool plain = p.constants == 0;
  r.replace(p.root, plain ? ops().plain : ops().with_constants, made.args, made.nargs, made.key, made.nkey, constants,
            plain ? 0 : 1 + p.constants);
  return true;
}

namespace {

class FuseChains final : public Pass {
 public:
  void begin(const Rewriter&, PassSet on) override { found_ = has(on, PassId::Join); }
  u32 run(Rewriter& r, const Lane& lane) override {
    if (!found_) r.chains.find(r, lane, false);
    return 0;
  }
  u32 finish(Rewriter& r) override {
    u32 count = 0;
    for (u32 c = 0; c < r.chains.count(); ++c) count += !r.chains.in_parts(c) && r.chains.write(r, c);
    return count;
  }

 private:
  bool found_ = false;
};

}  // namespace

std::unique_ptr<Pass> fuse_chains() { return std::make_unique<FuseChains>(); }

}  // namespace dnl
