// Bundling: a node that takes mini-batches made by concatenate_to_batch reads their elements where they lie, when
// nobody else can ever ask for the mini-batches.
//
// affine_transform([b, W, concatenate_to_batch(states)]) becomes a bundle: one node, which runs as if it were as many
// members of a batch as there are states. Nothing is copied, gradients go straight to the states, and states that are
// one in memory (rewrite/rules/merge.cc) stay so.
#include <algorithm>

#include "rewrite/passes.h"

namespace dnl {
namespace {

class BundleBatches final : public Pass {
 public:
  u32 run(Rewriter& r, const Lane& lane) override;
  void release() override { release_all(takers_, args_); }

 private:
  bool takes(OpId op) const { return op == affine_ || op == product_ || op == loss_ || op == concatenation_; }
  bool is_list(const Rewriter& r, NodeId a, NodeId of) const;
  bool fits(const Rewriter& r, NodeId i) const;
  void rewrite(Rewriter& r, NodeId i);

  // Ops that compute the elements of a mini-batch as they do members of a batch; a list of member attributes has one
  // for each.
  const OpId list_ = op_by_name("concatenate_to_batch"), affine_ = op_by_name("affine_transform"),
             product_ = op_by_name("matmul"), loss_ = op_by_name("_affine_loss"),
             concatenation_ = op_by_name("concatenate");
  Vec<NodeId> takers_, args_;
};

// A mini-batch of as many elements, each from a node of its own.
bool BundleBatches::is_list(const Rewriter& r, NodeId a, NodeId of) const {
  const Graph& g = r.graph();
  const u32 elements = g.dim(of).bd;
  return g.signature(a).op == list_ && g.nargs(a) == elements && g.dim(a).bd == elements && r.absorbable(a, of);
}

bool BundleBatches::fits(const Rewriter& r, NodeId i) const {
  const Graph& g = r.graph();
  const Signature& sig = g.signature(i);
  if (!takes(sig.op) || sig.items > 1) return false;
  const NodeId* args = g.operands(i);
  bool any = false;
  for (u32 j = 0; j < sig.nargs; ++j) {
    if (g.arg_shared(g.node(i).sig, j) ? g.dim(args[j]).bd != 1 : !is_list(r, args[j], i)) return false;
    any |= !g.arg_shared(g.node(i).sig, j);
  }
  return any;
}

u32 BundleBatches::run(Rewriter& r, const Lane& lane) {
  takers_.clear();
  for (const Kind::Role role : {Kind::kProduct, Kind::kLoss, Kind::kConcatenation})
    for (NodeId i : lane.of[role])
      if (r.graph().dim(i).bd > 1) takers_.push_back(i);
  std::sort(takers_.begin(), takers_.end());
  u32 count = 0;
  for (NodeId i : takers_) {
    if (!r.graph().is_op(i) || !fits(r, i)) continue;
    rewrite(r, i);
    ++count;
  }
  return count;
}

void BundleBatches::rewrite(Rewriter& r, NodeId i) {
  const Graph& g = r.graph();
  const u32 s = g.node(i).sig, nargs = g.nargs(i);
  args_.clear();
  for (u32 e = 0; e < g.dim(i).bd; ++e)
    for (u32 j = 0; j < nargs; ++j) {
      const NodeId a = g.operands(i)[j];
      if (!g.arg_shared(s, j))
        args_.push_back(g.operands(a)[e]);
      else if (e == 0)
        args_.push_back(a);
    }
  for (u32 j = 0; j < nargs; ++j)
    if (!g.arg_shared(s, j)) r.absorb(g.operands(i)[j], i);
  r.bundle(i, args_.data(), static_cast<u32>(args_.size()));
}

}  // namespace

std::unique_ptr<Pass> bundle_batches() { return std::make_unique<BundleBatches>(); }

}  // namespace dnl
