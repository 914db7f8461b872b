// Chains of elementwise ops: the trees that become one node each, with its program (op/fused.h).
//
// They are found once, for two passes: `join` writes those that read maps which it joined, `fuse` all others. What is
// here is in rules/fuse.cc. Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"
#include "op/fused.h"

namespace dnl {

struct Lane;
class Rewriter;

class Chains {
 public:
  void begin();
  // Those of a lane. maps: an op by itself is one, too, if it reads an affine map that may be joined.
  void find(Rewriter& r, const Lane& lane, bool maps);
  u32 count() const { return static_cast<u32>(programs_.size()); }
  NodeId root(u32 c) const { return programs_[c].root; }
  // f(k, node) for its inputs.
  template <class F>
  void each_input(u32 c, F f) const {
    const Program& p = programs_[c];
    for (u32 k = 0; k < p.inputs; ++k) f(k, inputs_[p.input + k].node);
  }
  // Input k is a part of node `of` from now on, which begins there (floats).
  void read_part(u32 c, u32 k, NodeId of, u32 offset) {
    Input& in = inputs_[programs_[c].input + k];
    in.part_of = of;
    in.offset = offset;
    programs_[c].in_parts = true;
  }
  bool in_parts(u32 c) const { return programs_[c].in_parts; }
  // Its root becomes the node of all. False: nothing would be gained.
  bool write(Rewriter& r, u32 c);
  void release() { release_all(size_, roots_, programs_, inputs_, absorbed_, steps_, constants_); }

 private:
  // The tree under a node; no steps: not elementwise. Is it in that of its reader?
  struct Size {
    u8 steps, inputs;
    bool taken;
  };
  struct Input {
    NodeId node, part_of;  // kNoNode: it is read whole
    u32 offset;
  };
  struct Program {
    NodeId root;
    u32 input, inputs;        // in inputs_
    u32 absorbed;             // in absorbed_, to those of the next program
    u32 step, steps;          // in steps_
    u32 constant, constants;  // in constants_
    bool in_parts;
  };
  // Key and arguments of the node of a program.
  struct Made {
    NodeId args[fused::kMaxInputs];
    u32 nargs = 0;
    Word key[3 + fused::kMaxSteps + 2 * fused::kMaxInputs];
    u32 nkey = 0;
  };
  bool take_in(Rewriter& r, NodeId i, bool maps);
  void gather(Rewriter& r, NodeId root);
  u32 operand(Rewriter& r, NodeId i);
  u32 steps_of(Rewriter& r, NodeId i);
  u32 add_step(const fused::Step& step) {
    Word w;
    w.u = step.word();
    steps_.push_back(w);
    return fused::kMaxInputs + programs_.back().steps++;
  }
  bool is_part(const Program& p, u32 operand) const {
    return operand < fused::kMaxInputs && inputs_[p.input + operand].part_of != kNoNode;
  }
  void keep_apart(Rewriter& r, const Program& p, u32 operand) const;
  void write_steps(Rewriter& r, const Program& p, Made& made) const;
  void write_inputs(const Graph& g, const Program& p, Made& made) const;

  bool begun_ = false;
  Vec<Size> size_;  // by node, from the first that may change
  Vec<NodeId> roots_;
  Vec<Program> programs_;
  Vec<Input> inputs_;
  Vec<NodeId> absorbed_;
  Vec<Word> steps_, constants_;
};

}  // namespace dnl
