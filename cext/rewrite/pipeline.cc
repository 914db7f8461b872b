#include "rewrite/pipeline.h"

#include "rewrite/affine.h"

namespace dnl {

// A node a line: number, what it is and where it runs, arguments.
void RewriteLog::note(const char* name, const Graph& g, NodeId from) {
  if (!on) return;
  std::string text;
  for (NodeId i = from; i < g.size(); ++i) {
    text += std::to_string(i) + "\t" + g.describe(i) + "\t";
    for (u32 j = 0; j < g.nargs(i) && !g.node(i).is(kLeaf); ++j) text += " " + std::to_string(g.source(g.operands(i)[j]));
    text += "\n";
  }
  entries.push_back({name, text});
}

void Pipeline::begin(const Graph& g, NodeId from, PassSet on) {
  from_ = from;
  on_ = on;
  list_.assign(g.size() - from, 0);
  kinds_.begin(g);
  seen_.clear();
  losses_seen_.clear();
  products_.clear();
  concatenations_.clear();
  sums_.begin(g, from);
  losses_.begin(from);
  attention_.begin(from);
  fuser_.begin(g, from, has(on, PassId::Join));
  concats_.begin(from);
  bundler_.begin(from);
}

void Pipeline::find_losses(const Graph& g) {
  u8 list = 0;
  for (NodeId i : seen_) {
    if (i == kNoNode) {
      ++list;
      continue;
    }
    list_[i - from_] = list;
    if (kinds_.of(g, i).sort == Kind::kLoss && g.is_op(i)) losses_seen_.push_back(i);
  }
}

// The candidates of each pass after sums, in their order. A loss that has been folded is one no more, but takes mini-batches still.
void Pipeline::sort_out(const Graph& g) {
  kinds_.update(g);
  std::size_t next_loss = 0;
  for (NodeId i : seen_) {
    if (i == kNoNode) {
      fuser_.end_list();
      continue;
    }
    const bool loss = next_loss < losses_seen_.size() && losses_seen_[next_loss] == i;
    next_loss += loss;
    if (!g.is_op(i)) continue;
    const Kind::Sort sort = kinds_.of(g, i).sort;
    if (loss || sort == Kind::kProduct || sort == Kind::kConcatenation) bundler_.see(g, i);
    // Attention looks at rows, and concatenations are read by what stands behind them: most products need not be looked at again.
    if (sort == Kind::kProduct && (g.dim(i).nd == 2 || !concatenations_.empty())) products_.push_back(i);
    else if (sort == Kind::kConcatenation) concatenations_.push_back(i);
    else if (sort == Kind::kElementwise) fuser_.see(g, i);
  }
}

bool Pipeline::fold_losses(Graph& g) {
  for (NodeId i : losses_seen_)
    if (!g.node(i).is(kInner)) losses_.see(g, i);
  return losses_.finish(g);
}

bool Pipeline::fold_attention(Graph& g) {
  for (NodeId i : products_) attention_.see(g, i);
  return attention_.finish(g);
}

bool Pipeline::fold_concatenations(Graph& g) {
  if (concatenations_.empty()) return false;
  for (NodeId i : concatenations_) concats_.see_concatenation(g, i);
  for (NodeId i : products_)
    if (g.is_op(i) && is_affine(g.signature(i))) concats_.see_product(g, i);
  return concats_.finish(g);
}

bool Pipeline::finish(Graph& g, RewriteLog& log) {
  bool any = false;
  auto run = [&](PassId id, auto f) {
    if (!has(on_, id)) return;
    any |= f();
    log.note(pass(id).name, g, from_);
  };
  find_losses(g);
  run(PassId::Loss, [&] { return fold_losses(g); });
  run(PassId::Sum, [&] { return sums_.finish(g, list_); });
  sort_out(g);
  run(PassId::Attention, [&] { return fold_attention(g); });
  run(PassId::Fuse, [&] { return fuser_.find(g); });
  run(PassId::Join, [&] { return fuser_.join(g); });
  if (has(on_, PassId::Fuse)) fuser_.write(g);
  run(PassId::Concat, [&] { return fold_concatenations(g); });
  run(PassId::Bundle, [&] { return bundler_.finish(g); });
  return any;
}

}  // namespace dnl
