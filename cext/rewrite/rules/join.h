// Joining: affine maps of the same inputs become one node.
//
// Gates written by hand are an affine map each, all of the same input and state: W_i x + U_i h, W_f x + U_f h, ...
// Those that are read by fused nodes alone, and once, become one node whose results lie one behind the other
// (ops/affine.cc). The fused nodes read their parts of it. Who may include: rewrite/rules/fuse.cc. Includes:
// rewrite/affine.h.
#pragma once
#include "rewrite/affine.h"

namespace dnl {

class Joiner {
 public:
  // Where the value of an offered node is found after join().
  struct Part {
    NodeId node;
    u32 offset;  // floats
  };

  void begin();
  // What is offered later is not joined with what was offered before: it is in another lane.
  void end_lane();
  // Can node i, which may become a part of the one that reads it, be joined with others?
  static bool fits(Rewriter& r, NodeId i);
  // One that fits. Returns its number.
  u32 offer(const Graph& g, NodeId i);
  // Joins what can be joined. How many maps?
  u32 join(Rewriter& r);
  void release() { release_all(members_, siblings_, written_); }
  Part part(u32 number) const { return {members_[number].at, members_[number].offset}; }
  bool joined(u32 number) const { return members_[number].joined; }

 private:
  static constexpr u32 kMaxInputs = 3, kMaxMaps = 12;
  struct Member {
    NodeId node, at;
    u32 offset, next;
    bool joined;
  };
  // Maps of the same inputs.
  struct Siblings {
    u32 first, last, count;  // members
    NodeId leader;
    OpId op;
    u32 inputs;
    NodeId input[kMaxInputs];
  };
  bool has(const Graph& g, const Siblings& s, NodeId i) const;
  void rewrite(Rewriter& r, const Siblings& s);

  Vec<Member> members_;
  Vec<Siblings> siblings_;
  static constexpr u32 kRecent = 256;
  u32 recent_[kRecent];  // siblings, by their last input
  AffineWriter written_;
  friend bool can_be_joined(const Graph& g, NodeId map);
};

}  // namespace dnl
