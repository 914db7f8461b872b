// Fusing: chains of elementwise ops become one node.
//
// Gates written by hand are many small ops, each a pass over memory of its own: cmult(logistic(z), tanh(u)). Before new
// nodes are planned, an op that only one other elementwise op of the same shape reads, and that nobody else can ever ask
// for (no expression refers to it), is taken into that op; what is left is a node with the program of the whole tree of
// them (op/fused.h). The values are the same to the last bit. The affine maps that such nodes read are joined
// (graph/join.h). Folded are losses into the maps that make their scores (graph/fold_loss.h), sums of products into one map
// (graph/fold_sum.h), concatenations into the products that read them (graph/fold_concat.h), what the scores of attention are made
// of into these (graph/fold_attention.h), and mini-batches that are made of single nodes into what reads them (graph/bundle.h).
// Who may include: exec/. Includes: graph/graph.h.
#pragma once
#include "graph/bundle.h"
#include "graph/fold_attention.h"
#include "graph/fold_concat.h"
#include "graph/fold_loss.h"
#include "graph/fold_sum.h"
#include "graph/join.h"
#include "op/backend.h"
#include "op/fused.h"

namespace dnl {

class Fuser {
 public:
  // Are the ops that this makes among those of a backend?
  static bool possible(const Backend& backend);
  // Looks at the nodes from `from` on, of which none has run: at all of them that run (Graph::is_op), one by one, in their order
  // within lists. Maps of different lists are not joined, for lists may run at the same time.
  void begin(const Graph& g, NodeId from);
  void see(const Graph& g, NodeId i) {
    const Kind& k = kind(g, g.node(i).sig);
    if (g.node(i).is(kWeight) || (k.sort == Kind::kOther && !k.sum)) return;
    seen_.push_back(i);
    if (k.sum) sums_.see(g, i);
  }
  void end_list() { seen_.push_back(kNoNode); }
  // Rewrites those that still run. Does any not run by itself any more?
  bool finish(Graph& g);
  void release() {
    release_all(seen_, size_, list_, roots_, kinds_, programs_, inputs_, steps_, constants_, joiner_, losses_, attention_, concats_, sums_,
                bundler_);
  }

 private:
  // What there is to know of a signature: asked once.
  struct Kind {
    enum : u8 { kUnknown, kOther, kElementwise, kProduct, kConcatenation, kLoss } sort;
    Formula formula;
    u8 id, constants;
    bool reads_value_only, sum;
  };
  // The tree under a node; no steps: not elementwise.
  struct Size { u8 steps, inputs; };
  struct Input {
    NodeId node;
    u32 offered;  // its number at the joiner, or kNoNode
  };
  struct Program {
    NodeId root;
    u32 input, inputs;        // in inputs_
    u32 step, steps;          // in steps_
    u32 constant, constants;  // in constants_
  };
  const Kind& kind(const Graph& g, u32 sig) {
    if (kinds_[sig].sort == Kind::kUnknown) kinds_[sig] = judge(g, sig);
    return kinds_[sig];
  }
  static Kind judge(const Graph& g, u32 sig);
  void know_signatures(const Graph& g);
  void look_first(Graph& g);
  bool same_list(NodeId i, NodeId k) const { return list_[i - from_] == list_[k - from_]; }
  void consider(Graph& g, NodeId i);
  bool take_in(Graph& g, NodeId i);
  bool write_programs(Graph& g);
  void write_program(const Graph& g, NodeId root);
  u32 operand(const Graph& g, NodeId i);
  u32 steps_of(const Graph& g, NodeId i);
  u32 add_step(const fused::Step& step);
  void keep_apart(Graph& g, const Program& p, u32 operand);
  void rewrite(Graph& g, const Program& program);
  bool joined(const Input& in) const { return in.offered != kNoNode && joiner_.joined(in.offered); }

  NodeId from_ = 0;
  Vec<NodeId> seen_;    // of some kind; kNoNode at the end of each list
  Vec<Size> size_;      // by node, from from_ on
  Vec<u8> list_;        // likewise, of those seen: which list they are in
  Vec<NodeId> roots_;   // of programs; kNoNode at the end of each list
  Vec<Kind> kinds_;     // by signature
  bool any_taken_ = false;
  Vec<Program> programs_;
  Vec<Input> inputs_;
  Vec<Word> steps_, constants_;
  Joiner joiner_;
  LossFolder losses_;
  AttentionFolder attention_;
  ConcatFolder concats_;
  SumFolder sums_;
  Bundler bundler_;
};

}  // namespace dnl
