// Repeat: an op node that is made many times with some other arguments, as those of a recurrent layer or of a recorded
// cell are. What all of them have in common is looked at once. RepeatAdder adds such nodes to a graph.
//
// A Repeat is good in one generation of a graph, for arguments that would give the same signature: whoever uses it sees
// to both. Who may include: graph/. Includes: graph/append.h.
#pragma once
#include "graph/append.h"

namespace dnl {

struct Repeat {
  static constexpr u32 kMost = 32, kMostMoving = 8;  // arguments, those that move

  // Like node i, an op and no alias, which has been made in this generation. moves(j): is argument j another one each
  // time? False: it has too many arguments.
  template <class Moves>
  bool begin(const Graph& g, NodeId i, Moves moves) {
    const Signature& sig = g.signature(i);
    n_args = sig.nargs;
    if (n_args > kMost) return false;
    like = g.node(i);
    like.readers = like.handles = 0;
    like.value = nullptr;
    outputs = sig.visible;
    for (u32 o = 0; o < outputs; ++o) dim[o] = sig.dim[o];
    flags = sig.flags;
    of_any = sig.of_any;
    of_all = sig.of_all;
    n_moving = fixed = any = depth = 0;
    all = 0xffffffffu;
    for (u32 j = 0; j < n_args; ++j) {
      const Node& a = g.node(args[j] = g.operands(i)[j]);
      if (moves(j)) {
        if (n_moving == kMostMoving) return false;
        place[n_moving++] = j;
        continue;
      }
      fixed |= 1u << j;
      any |= a.flags;
      all &= a.flags;
      depth = a.depth > depth ? a.depth : depth;
    }
    return true;
  }

  Node like;
  u32 n_args, n_moving, outputs;
  u32 fixed;                  // bits: arguments that are the same, as long as it matters how often they are read
  u32 any, all, depth;        // flags that some of those have, that all of them have; depth of the deepest
  u32 flags, of_any, of_all;  // as in Signature
  u32 dim[kMaxOutputs];
  u32 place[kMostMoving];  // of the arguments that move
  NodeId args[kMost];
};

// Nothing else may be added to the graph between begin() and end().
class RepeatAdder {
 public:
  explicit RepeatAdder(Graph& g) : g_(g) {}

  // Room for so many nodes, arguments, words.
  void begin(u32 nodes, u32 args, u32 words) {
    g_.nodes_.make_room(nodes);
    g_.operands_.make_room(args + kStride);
    g_.words_.make_room(words);
    nodes_ = g_.nodes_.data();
    operands_ = g_.operands_.data();
    words_ = g_.words_.data();
    n_nodes_ = g_.size();
    if (nodes > Graph::kMostNodes - n_nodes_) Graph::too_many_nodes();
    n_operands_ = static_cast<u32>(g_.operands_.size());
    n_words_ = static_cast<u32>(g_.words_.size());
  }
  void end() {
    g_.nodes_.resize(n_nodes_);
    g_.operands_.resize(n_operands_);
    g_.words_.resize(n_words_);
  }

  // The node once more; arg(m) is argument m of the n_moving that move.
  template <class Arg>
  NodeId add(Repeat& r, u32 n_moving, Arg arg, const Word* member, u32 nmember) {
    NodeId* const to = operands_ + n_operands_;
    DNL_FETCH_TO_WRITE(to + kAhead / sizeof(NodeId));
    const u32 n_args = r.n_args, outputs = r.outputs;
    for (u32 j = 0; j < n_args; j += kStride) std::memcpy(to + j, r.args + j, kStride * sizeof(NodeId));
    u32 depth = r.depth, any = r.any, all = r.all;
    for (u32 m = 0; m < n_moving; ++m) {
      Node& a = nodes_[to[r.place[m]] = arg(m)];
      const u32 flags = a.flags, deep = a.depth;
      Graph::count(a.readers);
      depth = deep > depth ? deep : depth;
      any |= flags;
      all &= flags;
    }
    if (r.fixed) count_fixed(nodes_, r);
    DNL_INTERNAL(!(any & (kFused | kDead)), "graph: an argument has become a part of another node, or will not run");
    const NodeId id = n_nodes_;
    n_nodes_ += outputs;
    n_operands_ += n_args;
    const u32 flags = r.flags | (any & r.of_any) | (all & r.of_all);
    Node* n = nodes_ + id;
    DNL_FETCH_TO_WRITE(reinterpret_cast<char*>(n) + kAhead);
    const u32 at = n_operands_ - n_args, words = n_words_;
    write(n, r.like, at, words, id, id, depth + 1, flags);
    for (u32 o = 1; o < outputs; ++o) {
      write(++n, r.like, at, words, id, id + o, depth + 1, flags | kOutput);
      n->dim = r.dim[o];
    }
    for (u32 k = 0; k < nmember; ++k) words_[words + k] = member[k];
    n_words_ = words + nmember;
    return id;
  }
  Node& node(NodeId i) const { return nodes_[i]; }

 private:
  // Arguments are copied so many at a time; what comes in so many bytes is asked for: pages end the processor's own
  // foresight.
  static constexpr u32 kStride = 4, kAhead = 1024;
  static_assert(Repeat::kMost % kStride == 0, "what is copied too much is there");

  static void write(Node* n, const Node& like, u32 at, u32 words, NodeId id, NodeId root, u32 depth, u32 flags) {
    *n = like;
    n->args = at;
    n->member = words;
    n->producer = id;
    n->root = root;
    n->depth = depth;
    n->flags = static_cast<u16>(flags);
  }
  // Those that are read as often as is counted need not be looked at again.
  static void count_fixed(Node* nodes, Repeat& r) {
    for (u32 j = 0; j < r.n_args; ++j) {
      if (!(r.fixed >> j & 1u)) continue;
      Node& a = nodes[r.args[j]];
      Graph::count(a.readers);
      if (a.readers == Node::kMany) r.fixed &= ~(1u << j);
    }
  }

  // No two numbers that change stand side by side: compilers would read them together, which must wait for what was
  // written of them apart.
  Graph& g_;
  u32 n_nodes_ = 0;
  Node* nodes_ = nullptr;
  u32 n_operands_ = 0;
  NodeId* operands_ = nullptr;
  u32 n_words_ = 0;
  Word* words_ = nullptr;
};

}  // namespace dnl
