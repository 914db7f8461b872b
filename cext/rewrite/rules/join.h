// Joining: affine maps of the same inputs become one node.
//
// Gates written by hand are an affine map each, all of the same input and state: W_i x + U_i h, W_f x + U_f h, ... Those that
// are read by fused nodes alone, and once, become one node whose results lie one behind the other (ops/affines.cc).
// The fused nodes read their parts of it. Who may include: rewrite/.
// Includes: graph/graph.h.
#pragma once
#include "graph/graph.h"

namespace dnl {

class Joiner {
 public:
  // Where the value of an offered node is found after join().
  struct Part {
    NodeId node;
    u32 offset;  // floats
  };

  void begin(const Graph& g, NodeId from);
  // What is offered later is not joined with what was offered before.
  void end_list();
  // Is node i of a sort that can be joined? Decided once per signature.
  bool joinable(const Graph& g, NodeId i) {
    u8& verdict = verdict_[g.node(i).sig];
    if (!verdict) verdict = judge(g, i);
    return verdict != kNo;
  }
  // And can it be joined with others?
  bool fits(const Graph& g, NodeId i);
  // A node that fits and is read by one fused node, the caller promises. Returns its number.
  u32 offer(const Graph& g, NodeId i);
  // Joins what can be joined; is there any?
  bool join(Graph& g);
  void release() { release_all(verdict_, members_, bundles_, args_); }
  Part part(u32 number) const { return {members_[number].at, members_[number].offset}; }
  bool joined(u32 number) const { return members_[number].joined; }

 private:
  static constexpr u32 kMaxInputs = 3, kMaxMaps = 12;
  struct Member {
    NodeId node, at;
    u32 offset, next;
    bool joined;
  };
  struct Bundle {
    u32 first, last, count;  // members
    NodeId leader;
    OpId op;
    u32 inputs;
    NodeId input[kMaxInputs];
  };
  enum Verdict : u8 { kUnknown, kNo, kYes };
  static u8 judge(const Graph& g, NodeId i);
  bool has(const Graph& g, const Bundle& bundle, NodeId i) const;
  void rewrite(Graph& g, const Bundle& bundle);

  NodeId from_ = 0;
  Vec<u8> verdict_;     // by signature: 0 not asked yet
  Vec<Member> members_;
  Vec<Bundle> bundles_;
  static constexpr u32 kRecent = 256;
  u32 recent_[kRecent];  // bundles, by their last input
  Vec<NodeId> args_;
};

}  // namespace dnl
