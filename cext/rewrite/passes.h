// A pass over the graph, and the table of all of them, in the order in which they run.
// Who may include: rewrite/, exec/, bindings/. Includes: rewrite/rewriter.h.
#pragma once
#include <memory>
#include <string>

#include "op/backend.h"
#include "rewrite/rewriter.h"

namespace dnl {

// The op nodes of a lane that are to run, ascending, and those of each role among them that are no weights. What the
// passes before did to them stands in the graph: some do not run any more (Graph::is_op), others have another role.
struct Lane {
  const NodeId* begin = nullptr;
  const NodeId* end = nullptr;
  Vec<NodeId> of[Kind::kRoles];
  Vec<NodeId> unread;  // that nothing read when they were made
};

enum class PassId : u8 { Dead, Merge, Loss, Sum, Attention, Join, Fuse, Concat, Layer, Bundle };
constexpr u32 kPasses = 10;
// A set of passes: a bit for each.
using PassSet = u32;
constexpr PassSet kAllPasses = (1u << kPasses) - 1;
constexpr PassSet only(PassId id) { return 1u << static_cast<u32>(id); }
constexpr bool has(PassSet set, PassId id) { return (set & only(id)) != 0; }

class Pass {
 public:
  virtual ~Pass() = default;
  // Before the first lane: room for notes by node, say. `on`: the passes that run.
  virtual void begin(const Rewriter&, PassSet /*on*/) {}
  // Rewrites what it finds in a lane, or notes it for finish(), after the last lane. How many nodes are new, or run no
  // more?
  virtual u32 run(Rewriter& r, const Lane& lane) = 0;
  virtual u32 finish(Rewriter&) { return 0; }
  // Gives memory back, between graphs.
  virtual void release() {}
};

struct PassInfo {
  const char* name;   // of its switch and its file in rules/
  const char* does;   // in a few words, for people
  const char* place;  // why it runs after those before it
  std::unique_ptr<Pass> (*make)();
  const char* makes[4];  // ops: a backend that lacks one of them goes without this pass
  bool makes_products;   // of sums
};

const PassInfo& pass_info(PassId id);
// Those whose ops a backend has.
PassSet passes_of(const Backend& backend);
// Those of them that may look at the nodes of a cell alone, before calls add them to graphs. Not `merge`: numbers that
// calls fill in are no numbers yet; not `bundle`: its nodes are made by passes only.
constexpr PassSet passes_ahead(PassSet on) { return on & ~(only(PassId::Merge) | only(PassId::Bundle)); }
// Throws Error(Value) naming those there are.
PassId pass_by_name(const std::string& name);

}  // namespace dnl
