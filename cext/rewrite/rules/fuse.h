// Fusing: chains of elementwise ops become one node.
//
// Gates written by hand are many small ops, each a pass over memory of its own: cmult(logistic(z), tanh(u)). Before new
// nodes are planned, an op that only one other elementwise op of the same shape reads, and that nobody else can ever ask
// for (no expression refers to it), is taken into that op; what is left is a node with the program of the whole tree of
// them (op/fused.h). The values are the same to the last bit. The affine maps that such nodes read are joined
// (rewrite/rules/join.h). Who may include: rewrite/. Includes: graph/graph.h.
#pragma once
#include "op/fused.h"
#include "rewrite/kinds.h"
#include "rewrite/rules/join.h"

namespace dnl {

class Fuser {
 public:
  // list: by node, from the first on, which list it is in.
  Fuser(Kinds& kinds, const Vec<u8>& list) : kinds_(kinds), list_(list) {}
  void begin(const Graph& g, NodeId from, bool joins);
  // Candidates, which are elementwise, in their order within lists.
  void see(const Graph& g, NodeId i) {
    if (!g.node(i).is(kInner)) seen_.push_back(i);
  }
  void end_list() { seen_.push_back(kNoNode); }
  // Marks what runs inside its reader, and gathers the programs of what is left; joins the maps that these read; writes them.
  // Does any not run by itself any more?
  bool find(Graph& g);
  bool join(Graph& g) { return !programs_.empty() && joiner_.join(g); }
  void write(Graph& g);
  void release() { release_all(seen_, size_, roots_, programs_, inputs_, steps_, constants_, joiner_); }

 private:
  // The tree under a node; no steps: not elementwise.
  struct Size { u8 steps, inputs; };
  struct Input {
    NodeId node;
    u32 offered;  // its number at the joiner, or kNoNode
    u32 reads;    // by steps
  };
  struct Program {
    NodeId root;
    u32 input, inputs;        // in inputs_
    u32 step, steps;          // in steps_
    u32 constant, constants;  // in constants_
  };
  bool same_list(NodeId i, NodeId k) const { return list_[i - from_] == list_[k - from_]; }
  bool take_in(Graph& g, NodeId i);
  void gather(const Graph& g, NodeId root);
  u32 operand(const Graph& g, NodeId i);
  u32 steps_of(const Graph& g, NodeId i);
  u32 add_step(const fused::Step& step);
  void keep_apart(Graph& g, const Program& p, u32 operand);
  void rewrite(Graph& g, const Program& program);
  bool joined(const Input& in) const { return in.offered != kNoNode && joiner_.joined(in.offered); }

  Kinds& kinds_;
  const Vec<u8>& list_;
  NodeId from_ = 0;
  bool joins_ = true;
  Vec<NodeId> seen_;   // kNoNode at the end of each list
  Vec<Size> size_;     // by node, from from_ on
  Vec<NodeId> roots_;  // of programs; kNoNode at the end of each list
  bool any_taken_ = false;
  Vec<Program> programs_;
  Vec<Input> inputs_;
  Vec<Word> steps_, constants_;
  Joiner joiner_;
};

}  // namespace dnl
