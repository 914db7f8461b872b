// Fusing: chains of elementwise ops become one node.
//
// Gates written by hand are many small ops, each a pass over memory of its own: cmult(logistic(z), tanh(u)). An op that
// only one other elementwise op of the same shape reads, and that nobody else can ever ask for, is taken into that op;
// what is left is a node with the program of the whole tree of them (op/fused.h). The values are the same to the last
// bit. The affine maps that such nodes read are joined (rewrite/rules/join.h) before programs are written, and read in
// parts.
#include "op/fused.h"

#include "rewrite/passes.h"
#include "rewrite/rules/join.h"

namespace dnl {
namespace {

class FuseChains final : public Pass {
 public:
  void begin(const Rewriter& r, u32 on) override;
  u32 run(Rewriter& r, const Lane& lane) override;
  u32 finish(Rewriter& r) override;
  void release() override { release_all(size_, roots_, programs_, inputs_, absorbed_, steps_, constants_, joiner_); }

 private:
  // The tree under a node; no steps: not elementwise. Is it in that of its reader?
  struct Size {
    u8 steps, inputs;
    bool taken;
  };
  struct Input {
    NodeId node;
    u32 offered;  // its number at the joiner, or kNoNode
  };
  struct Program {
    NodeId root;
    u32 input, inputs;        // in inputs_
    u32 absorbed;             // in absorbed_, to those of the next program
    u32 step, steps;          // in steps_
    u32 constant, constants;  // in constants_
  };
  // Key and arguments of the node of a program.
  struct Made {
    NodeId args[fused::kMaxInputs];
    u32 nargs = 0;
    Word key[3 + fused::kMaxSteps + 2 * fused::kMaxInputs];
    u32 nkey = 0;
  };
  bool take_in(Rewriter& r, NodeId i);
  void gather(Rewriter& r, NodeId root);
  u32 operand(Rewriter& r, NodeId i);
  u32 steps_of(Rewriter& r, NodeId i);
  u32 add_step(const fused::Step& step);
  bool joined(const Input& in) const { return in.offered != kNoNode && joiner_.joined(in.offered); }
  bool reads_parts(const Program& p) const;
  void keep_apart(Rewriter& r, const Program& p, u32 operand);
  void write_steps(Rewriter& r, const Program& p, Made& made);
  void write_inputs(const Graph& g, const Program& p, Made& made) const;
  bool write(Rewriter& r, const Program& p, u32 absorbed_end);

  // Constants of the formulas are member attributes, so that they need not be equal; most programs have none.
  const OpId plain_ = op_by_name("_fused"), with_constants_ = op_by_name("_fused_with_constants");
  const u8 addition_ = op_def(op_by_name("add")).formula_id;
  bool joins_ = true;
  Vec<Size> size_;  // by node
  Vec<NodeId> roots_;
  Vec<Program> programs_;
  Vec<Input> inputs_;
  Vec<NodeId> absorbed_;
  Vec<Word> steps_, constants_;
  Joiner joiner_;
};

// A sum may have become an affine map.
bool is_candidate(Rewriter& r, NodeId i) {
  return r.graph().is_op(i) && !r.graph().node(i).is(kInner) && r.kind(i).is(Kind::kElementwise);
}

void FuseChains::begin(const Rewriter& r, u32 on) {
  joins_ = has(on, PassId::Join);
  size_.assign(r.count(), Size{0, 0, false});
  programs_.clear();
  inputs_.clear();
  absorbed_.clear();
  steps_.clear();
  constants_.clear();
  joiner_.begin();
}

// Finds what runs inside its reader, and gathers the programs of what is left.
u32 FuseChains::run(Rewriter& r, const Lane& lane) {
  roots_.clear();
  for (NodeId i : lane.of[Kind::kElementwise])
    if (is_candidate(r, i) && take_in(r, i)) roots_.push_back(i);
  for (NodeId i : roots_)
    if (!size_[r.at(i)].taken) gather(r, i);
  joiner_.end_lane();
  return 0;
}

u32 FuseChains::finish(Rewriter& r) {
  u32 count = 0;
  if (joins_) {
    count += joiner_.join(r);
    r.note(pass_info(PassId::Join).name);
  }
  for (u32 k = 0; k < programs_.size(); ++k)
    count += write(r, programs_[k],
                   k + 1 < programs_.size() ? programs_[k + 1].absorbed : static_cast<u32>(absorbed_.size()));
  return count;
}

// Takes in those arguments of i that run inside it, as far as there is room. Is there any, or one that may be joined?
bool FuseChains::take_in(Rewriter& r, NodeId i) {
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
      of_use |= joins_ && r.kind(a).joins;
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

void FuseChains::gather(Rewriter& r, NodeId root) {
  programs_.push_back({root, static_cast<u32>(inputs_.size()), 0, static_cast<u32>(absorbed_.size()),
                       static_cast<u32>(steps_.size()), 0, static_cast<u32>(constants_.size()), 0});
  steps_of(r, root);
}

// The number by which steps refer to node i.
u32 FuseChains::operand(Rewriter& r, NodeId i) {
  if (i >= r.first() && size_[r.at(i)].taken) {
    absorbed_.push_back(i);
    return steps_of(r, i);
  }
  Program& p = programs_.back();
  for (u32 k = 0; k < p.inputs; ++k)
    if (inputs_[p.input + k].node == i) return k;
  const bool fits = joins_ && r.absorbable(i, p.root) && Joiner::fits(r, i);
  inputs_.push_back({i, fits ? joiner_.offer(r.graph(), i) : kNoNode});
  return p.inputs++;
}

// Appends what gives the value of node i; the number of the result.
u32 FuseChains::steps_of(Rewriter& r, NodeId i) {
  const Kind kind = r.kind(i);
  const Graph& g = r.graph();
  const NodeId* args = g.operands(i);
  u32 a = operand(r, args[0]);
  if (kind.formula == Formula::Sum) {
    for (u32 j = 1, n = g.nargs(i); j < n; ++j) {
      const u32 b = operand(r, args[j]);
      a = add_step({addition_, true, static_cast<u8>(a), static_cast<u8>(b)});
    }
    return a;
  }
  const bool binary = kind.formula == Formula::Binary;
  const u32 b = binary ? operand(r, args[1]) : 0;
  for (u32 k = 0; k < kind.constants; ++k) constants_.push_back(g.member(i)[k]);
  programs_.back().constants += kind.constants;
  return add_step({kind.id, binary, static_cast<u8>(a), static_cast<u8>(b), !binary && kind.reads_value_only});
}

u32 FuseChains::add_step(const fused::Step& step) {
  Word w;
  w.u = step.word();
  steps_.push_back(w);
  return fused::kMaxInputs + programs_.back().steps++;
}

// ---- the node ------------------------------------------------------------------------------------------------------

bool FuseChains::reads_parts(const Program& p) const {
  for (u32 k = 0; k < p.inputs; ++k)
    if (joined(inputs_[p.input + k])) return true;
  return false;
}

// A step of two operands may need one of them after the gradient of the other has been written.
void FuseChains::keep_apart(Rewriter& r, const Program& p, u32 operand) {
  if (operand >= fused::kMaxInputs) return;
  const Input& in = inputs_[p.input + operand];
  if (joined(in)) r.keep_gradient_apart(joiner_.part(in.offered).node);
}

void FuseChains::write_steps(Rewriter& r, const Program& p, Made& made) {
  made.key[made.nkey++].u = p.steps;
  for (u32 k = 0; k < p.steps; ++k) {
    fused::Step step = fused::Step::of(steps_[p.step + k].u);
    if (step.binary) {
      keep_apart(r, p, step.a);
      keep_apart(r, p, step.b);
    }
    step.over = step.over && step.a < fused::kMaxInputs && k + 1 < p.steps && joined(inputs_[p.input + step.a]);
    made.key[made.nkey++].u = step.word();
  }
}

// Each node once; where some are read in parts, for each input which one, and where its part begins.
void FuseChains::write_inputs(const Graph& g, const Program& p, Made& made) const {
  const bool in_parts = reads_parts(p);
  Word& parts = made.key[made.nkey++];
  parts.u = in_parts;
  if (in_parts) made.key[made.nkey++].u = g.dim(p.root).rows();
  for (u32 k = 0; k < p.inputs; ++k) {
    const Input& in = inputs_[p.input + k];
    const Joiner::Part part = in.offered == kNoNode ? Joiner::Part{in.node, 0} : joiner_.part(in.offered);
    u32 j = 0;
    while (j < made.nargs && made.args[j] != part.node) ++j;
    if (j == made.nargs) made.args[made.nargs++] = part.node;
    if (!in_parts) continue;
    made.key[made.nkey++].u = j;
    made.key[made.nkey++].u = part.offset;
    parts.u += 2;
  }
}

bool FuseChains::write(Rewriter& r, const Program& p, u32 absorbed_end) {
  if (p.steps == 1 && !reads_parts(p)) return false;  // nothing is gained
  Made made;
  write_steps(r, p, made);
  write_inputs(r.graph(), p, made);
  for (u32 k = p.absorbed; k < absorbed_end; ++k) r.absorb(absorbed_[k], p.root);
  Word constants[1 + 2 * fused::kMaxSteps];
  constants[0].u = p.constants;
  for (u32 k = 0; k < p.constants; ++k) constants[1 + k] = constants_[p.constant + k];
  const bool plain = p.constants == 0;
  r.replace(p.root, plain ? plain_ : with_constants_, made.args, made.nargs, made.key, made.nkey, constants,
            plain ? 0 : 1 + p.constants);
  return true;
}

}  // namespace

std::unique_ptr<Pass> fuse_chains() { return std::make_unique<FuseChains>(); }

}  // namespace dnl
