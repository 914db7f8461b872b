// Body: the nodes that a cell adds to a graph, recorded once, so that each call of the cell adds them again without
// Python.
//
// It is made from a graph in which the cell's function ran over stand-ins: there the nodes are numbered as *values*.
// First come the arguments; values from outside (parameters, tables) stand where the function first used them.
// Everything else is a step: an op with its attributes, a look-up, an input of fixed numbers. What differs between
// calls is *filled in*: words of attributes that are one of the call's integers, and seeds.
//
// The nodes are those that the function would make, in their order, or what passes have made of them in the recorded
// graph (rewrite/pipeline.h); seeds are drawn as the function would. A signature that cannot change within a graph is
// looked for once in it, and what its nodes have in common (graph/repeat.h). Adding may throw for an integer out of
// range, as the op would; nodes before it then stay, which nobody refers to. Who may include: bindings/. Includes:
// graph/repeat.h.
#pragma once
#include "graph/repeat.h"

namespace dnl {

class Body {
 public:
  // ---- recording: notes about nodes of the recorded graph, in their order, then finish() --------------------------
  // A value from outside.
  void outside(NodeId node) { outside_.push_back(node); }
  // How a look-up was made (Graph::add_lookup).
  void lookup(NodeId node, bool batched, bool update) { lookups_.push_back({node, batched, update}); }
  // Word `at` of the member attributes of a node, or row `at` of a look-up, is integer number `index` of the call.
  void fill(NodeId node, u32 at, u32 index) { noted_.push_back({node, at, index}); }
  // The graph's first n_args nodes are the arguments.
  void finish(const Graph& recorded, u32 n_args);

  // ---- use -------------------------------------------------------------------------------------------------------
  // Values from outside, nodes of g in the order of the notes: before the first call in a graph, and when they are
  // others.
  void enter(const Graph& g, const NodeId* outside);
  // Adds the nodes of `calls` calls. Their arguments lie one behind the other, and so do their integers, n_ints each,
  // and the nodes that the values `results` became, n_results each.
  void add_to(Graph& g, u32 calls, const NodeId* args, const i32* ints, u32 n_ints, const u32* results, u32 n_results,
              NodeId* made);
  // Copies rows of tables: steps that overlap must be settled first.
  bool copies_rows() const { return copies_rows_; }
  u32 steps() const { return static_cast<u32>(steps_.size()); }
  // Would both add the same nodes?
  bool same(const Body& other) const { return alike(other, true); }
  // The same of one that was recorded with the integers of a call as they are: what they fill in is not compared.
  bool same_but_filled(const Body& other) const { return alike(other, false); }

 private:
  enum class Kind : u8 { Op, Lookup, Constant, Input, Draw };  // Draw: the seeds of a node that is gone
  struct Step {
    Kind kind;
    bool kept;             // Graph::keep
    bool filled;           // some member words are integers of the call
    bool batched, update;  // of a look-up
    u8 visible;
    u16 marks;  // Graph::mark
    OpId op;
    u32 value;                 // its first value
    u32 args, nargs;           // in operands_; of a look-up: its table
    u32 words, nkey, nmember;  // in words_: key, then member attributes; rows; numbers
    u32 fills, nfills;
    u32 dim;         // inputs: in dims_
    u32 sig, epoch;  // the signature found in this epoch
    bool unchecked;  // nothing of a call can be wrong for it
    bool repeats;    // what its nodes have in common is known
    u32 repeat;      // where: in repeats_
    u64 right;       // bits: integers below 64 that its check let pass, where one is all that is filled in
  };
  // What the nodes of a step have in common, and the values of the arguments that they have not.
  struct Repeated {
    Repeat node;
    u32 value[Repeat::kMost];
  };
  struct Fill {
    u32 at, index;
  };  // a word of words_; kSeed: it and the next one are a seed
  struct Noted {
    NodeId node;
    u32 at, index;
  };
  struct Looked {
    NodeId node;
    bool batched, update;
  };
  static constexpr u32 kSeed = 0xffffffffu;
  static constexpr u32 kRoom = 16;  // calls for which room is made at once

  bool alike(const Body& other, bool fills) const;
  void record(const Graph& g, NodeId i);
  void record_op(const Graph& g, NodeId i, Step& s);
  bool known_before(const Graph& g, NodeId i) const;
  void record_leaf(const Graph& g, NodeId i, Step& s);
  void record_gone(const Graph& g, NodeId i, Step& s);
  void skip_fills(const Graph& g, NodeId i);
  void record_fills(NodeId i, Step& s);
  void record_seeds(Step& s);
  void take(const Graph& g, const NodeId* args);
  bool settled(const Graph& g, NodeId i, const Step& s) const;
  bool lasts(u32 value) const;
  u64 right_bit(const Step& s) const;
  void note(const Graph& g, NodeId i, Step& s);
  void fill_in(Graph& g, const Step& s, const i32* ints);
  void add_call(Graph& g, RepeatAdder& to, u32 room, const i32* ints);
  // For so many calls.
  void make_room(RepeatAdder& to, u32 n) const { to.begin(n * room_.nodes, n * room_.args, n * room_.words); }
  NodeId add_op(Graph& g, Step& s);
  NodeId add_leaf(Graph& g, const Step& s);

  u32 n_args_ = 0;
  bool copies_rows_ = false;
  Vec<Step> steps_;
  Vec<u32> operands_;
  Vec<Word> words_;
  Vec<Fill> fills_;
  Vec<Dim> dims_;
  Vec<NodeId> outside_;
  Vec<Looked> lookups_;
  Vec<Noted> noted_;
  struct {
    u32 nodes = 0, args = 0, words = 0;
  } room_;  // that the ops of a call take
  std::size_t next_lookup_ = 0, next_noted_ = 0;

  // In the graph that was entered last.
  Vec<NodeId> ids_;      // node of each value
  Vec<NodeId> weights_;  // arguments that are made of weights alone: they may be part of signatures; else kNoNode
  Vec<NodeId> args_;
  Vec<Repeated> repeats_;
  u32 epoch_ = 0;
};

}  // namespace dnl
