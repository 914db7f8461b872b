// SameOp: adds nodes of one op that mostly have the signature of the one before, as the steps of a recurrent layer do.
//
// Some arguments are the same each time in one graph, as weights are; the others, which follow one another, move. The
// signature is looked for when one of these has other dims or is a weight, and in another graph. Who may include:
// graph/cell_layer.h. Includes: graph/repeat.h.
#pragma once
#include "graph/repeat.h"

namespace dnl {

class SameOp {
 public:
  // Is the next node like that before, with these arguments where they move? generation: of the graph.
  template <class... Id>
  bool fits(const RepeatAdder& to, u32 generation, Id... moving) const {
    const NodeId args[] = {moving...};
    bool alike = generation_ == generation;
    for (u32 m = 0; m < sizeof...(Id); ++m) alike &= to.node(args[m]).dim == dim_[m] && !to.node(args[m]).is(kWeight);
    return alike;
  }
  // Adds it.
  template <class... Id>
  NodeId again(RepeatAdder& to, Id... moving) {
    const NodeId args[] = {moving...};
    return to.add(like_, sizeof...(Id), [&args](u32 m) { return args[m]; }, nullptr, 0);
  }

  // Graph::add() for an op without member attributes; op and key are those of every call. n_moving arguments from
  // number `first` on move.
  NodeId add(Graph& g, OpId op, const NodeId* args, int nargs, u32 first, u32 n_moving, const Word* key, int nkey) {
    const NodeId i = g.add(op, args, nargs, key, nkey, nullptr, 0);
    generation_ = repeats(g, i, first, n_moving) ? g.generation() : 0;
    return i;
  }

 private:
  static constexpr u32 kMost = 3;  // arguments that move

  bool repeats(const Graph& g, NodeId i, u32 first, u32 n_moving) {
    const u32 sig = g.node(i).sig;
    if (g.sig(sig).alias || n_moving > kMost) return false;
    for (u32 m = 0; m < n_moving; ++m) {
      const Node& a = g.node(g.operands(i)[first + m]);
      if (g.arg_shared(sig, first + m) || a.is(kWeight)) return false;
      dim_[m] = a.dim;
    }
    return like_.begin(g, i, [=](u32 j) { return j >= first && j < first + n_moving; });
  }

  u32 generation_ = 0;
  u32 dim_[kMost];  // of the arguments that move
  Repeat like_;
};

}  // namespace dnl
