// A graph for one pass: built on the null backend by the names of ops, rewritten by one pass alone, and looked at.
//
// A check builds a Sketch, says which nodes somebody can ask for (held), runs a pass, and says what the graph is then:
//
//   CHECK(dead, what_nothing_reads) {
//     const NodeId x = s.row(1), y = s.op("tanh", {x});
//     s.run(PassId::Dead);
//     s.is_dead(y);
//     s.same_but({y, x});
//   }
//
// run() verifies the graph after the pass (rewrite/verify.h). What is not as it was said is printed with its line.
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rewrite/pipeline.h"

namespace checks {

using namespace dnl;
using Nodes = std::vector<NodeId>;
using Words = std::vector<Word>;

inline Word word(int v) {
  Word w;
  w.i = v;
  return w;
}
inline Word word(float v) {
  Word w;
  w.f = v;
  return w;
}
// A list: its length and its items, or words one by one.
Words list(std::initializer_list<int> items);
Words ints(std::initializer_list<int> words);

class Sketch {
 public:
  static constexpr u32 kN = 16;  // rows of most vectors
  Graph g{*backend_by_name("null")};

  // ---- nodes, which nobody refers to ------------------------------------------------------------------------------
  NodeId weight(Dim d) { return g.add_parameter(std::make_shared<Parameter>(d)); }
  NodeId square() { return weight({kN, kN}); }
  NodeId bias() { return weight({kN}); }
  // Row k of a table of rows of n numbers.
  NodeId row(u32 k, u32 n = kN);
  NodeId input(Dim d = {kN}) { return g.add_input(d); }
  NodeId op(const char* name, Nodes args, Words key = {}, Words member = {});
  NodeId tanh(NodeId x) { return op("tanh", {x}); }
  NodeId exp(NodeId x) { return op("exp", {x}); }
  NodeId add(NodeId x, NodeId y) { return op("add", {x, y}); }
  NodeId product(NodeId w, NodeId x) { return op("matmul", {w, x}); }
  NodeId affine(Nodes args) { return op("affine_transform", std::move(args)); }
  // No part of any chain, map or concatenation.
  NodeId softmax(NodeId x) { return op("softmax", {x}, ints({0})); }
  NodeId state(u32 k) { return softmax(row(k)); }
  NodeId concatenate(Nodes xs, int d = 0) { return op("concatenate", std::move(xs), ints({d})); }
  NodeId batch(Nodes xs) { return op("concatenate_to_batch", std::move(xs)); }
  NodeId loss(NodeId scores, std::initializer_list<int> labels = {3}) {
    return op("pickneglogsoftmax", {scores}, {}, list(labels));
  }
  // An expression refers to it.
  NodeId held(NodeId i) {
    g.hold(i);
    return i;
  }
  NodeId inner(NodeId i) {
    g.mark(i, kInner);
    return i;
  }

  // ---- one pass ---------------------------------------------------------------------------------------------------
  // How many nodes did it change? Lanes: their op nodes; `unseen`: nodes from it on are as they were made.
  u32 run(PassId id, const std::vector<Nodes>& lanes = {}, NodeId unseen = 0) {
    return run(only(id), id, lanes, unseen);
  }
  u32 run(PassSet on, PassId counted, const std::vector<Nodes>& lanes = {}, NodeId unseen = 0);

  // ---- what the graph is ------------------------------------------------------------------------------------------
  void expect(bool ok, const std::string& what, int line = __builtin_LINE());
  // Op node i runs: this op, these arguments, and these attributes if any are given.
  void is(NodeId i, const char* op, const Nodes& args, const Words& key = {}, const Words& member = {},
          int line = __builtin_LINE());
  void is_inside(NodeId i, NodeId into, int line = __builtin_LINE());
  void is_dead(NodeId i, int line = __builtin_LINE());
  void is_alias(NodeId i, NodeId of, int line = __builtin_LINE());
  void has_uses(NodeId i, u32 n, int line = __builtin_LINE());
  void has_depth(NodeId i, u32 n, int line = __builtin_LINE());
  // Of a fused node.
  void has_formula(NodeId i, const std::string& text, int line = __builtin_LINE());
  // All nodes but these are, in every respect, what they were before run().
  void same_but(const Nodes& others, int line = __builtin_LINE());
  // The pass changed nothing, and says so.
  void same(int line = __builtin_LINE());
  // All of this in one: the pass leaves the graph alone.
  void leaves(PassId id, const std::vector<Nodes>& lanes = {}, int line = __builtin_LINE()) {
    run(id, lanes);
    same(line);
  }

  int failed = 0;

 private:
  std::string text(NodeId i) const;

  std::map<u32, NodeId> tables_;  // by size of their rows
  std::vector<std::string> before_;
  u32 changes_ = 0;
};

// The checks, found by "pass/what".
using Check = void (*)(Sketch&);
std::map<std::string, Check>& all_checks();
inline bool add_check(const char* name, Check check) { return all_checks().emplace(name, check).second; }

#define CHECK(pass, what)                                                                                       \
  static void pass##_##what(checks::Sketch& s);                                                                 \
  [[maybe_unused]] static const bool pass##_##what##_added = checks::add_check(#pass "/" #what, pass##_##what); \
  static void pass##_##what(checks::Sketch& s)

}  // namespace checks
