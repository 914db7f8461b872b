// The passes that turn single ops into larger nodes, run in the order of their table (rewrite/passes.h).
//
// Each looks at candidates of its kind among the nodes that have not run, and rewrites those for which nobody else can ask. Nodes are
// seen once, in walk order; what kind they are of is decided once per signature (rewrite/kinds.h). Dead code and merging, which
// look at other things, run before (exec/executor.cc). Who may include: exec/. Includes: rewrite/rules/.
#pragma once
#include <string>
#include <vector>

#include "rewrite/kinds.h"
#include "rewrite/passes.h"
#include "rewrite/rules/attention.h"
#include "rewrite/rules/bundle.h"
#include "rewrite/rules/concat.h"
#include "rewrite/rules/fuse.h"
#include "rewrite/rules/loss.h"
#include "rewrite/rules/sum.h"

namespace dnl {

// The graph as text after each pass that ran, while somebody asks.
struct RewriteLog {
  struct Entry {
    std::string name, text;
  };
  bool on = false;
  std::vector<Entry> entries;
  void note(const char* name, const Graph& g, NodeId from);
};

class Pipeline {
 public:
  // Looks at the nodes from `from` on, of which none has run: at all of them that run (Graph::is_op), one by one, in their order
  // within lists. Maps of different lists are not joined, for lists may run at the same time. `on`: which passes run.
  void begin(const Graph& g, NodeId from, PassSet on);
  void see(const Graph& g, NodeId i) {
    const Kind& k = kinds_.of(g, i);
    if (g.node(i).is(kWeight) || (k.sort == Kind::kOther && !k.sum)) return;
    seen_.push_back(i);
    if (k.sum && has(on_, PassId::Sum)) sums_.see(g, i);
  }
  void end_list() { seen_.push_back(kNoNode); }
  // Rewrites those that still run. Does any not run by itself any more?
  bool finish(Graph& g, RewriteLog& log);
  void release() {
    release_all(seen_, losses_seen_, products_, concatenations_, list_, kinds_, losses_, sums_, attention_, fuser_, concats_, bundler_);
  }

 private:
  void find_losses(const Graph& g);
  void sort_out(const Graph& g);
  bool fold_losses(Graph& g);
  bool fold_attention(Graph& g);
  bool fold_concatenations(Graph& g);

  NodeId from_ = 0;
  PassSet on_ = kAllPasses;
  Kinds kinds_;
  Vec<NodeId> seen_;  // of some kind; kNoNode at the end of each list
  Vec<u8> list_;      // by node, from from_ on, of those seen: which list they are in
  Vec<NodeId> losses_seen_, products_, concatenations_;
  LossFolder losses_;
  SumFolder sums_;
  AttentionFolder attention_;
  Fuser fuser_{kinds_, list_};
  ConcatFolder concats_;
  Bundler bundler_;
};

}  // namespace dnl
