// Folding: the scores of additive attention become one node when nobody else can ever ask for what is between.
//
// v * tanh(keys + query), the query a vector that is added to each column of the keys: ops/attention_scores.cc.
#include <utility>

#include "rewrite/passes.h"

namespace dnl {
namespace {

class FoldAttention final : public Pass {
 public:
  u32 run(Rewriter& r, const Lane& lane) override {
    u32 count = 0;
    for (NodeId i : lane.of[Kind::kProduct])
      if (r.graph().dim(i).nd == 2 && r.graph().is_op(i)) count += fold(r, i);
    return count;
  }

 private:
  bool fold(Rewriter& r, NodeId product) const;

  const OpId product_ = op_by_name("matmul"), tanh_ = op_by_name("tanh"), sum_ = op_by_name("add"),
             scores_ = op_by_name("_attention_scores");
};

bool FoldAttention::fold(Rewriter& r, NodeId product) const {
  const Graph& g = r.graph();
  const Dim& out = g.dim(product);
  if (g.signature(product).op != product_ || out.rows() != 1 || out.bd != 1 || !g.arg_shared(g.node(product).sig, 0))
    return false;
  const NodeId v = g.operands(product)[0], tanh = g.operands(product)[1];
  if (!r.absorbable(tanh, product) || g.signature(tanh).op != tanh_) return false;
  const NodeId sum = g.operands(tanh)[0];
  if (!r.absorbable(sum, tanh) || g.signature(sum).op != sum_) return false;
  NodeId keys = g.operands(sum)[0], query = g.operands(sum)[1];
  if (!g.dim(query).is_vector()) std::swap(keys, query);
  const Dim &matrix = g.dim(keys), &vector = g.dim(query), &row = g.dim(v);
  if (matrix.nd > 2 || matrix.bd != 1 || !vector.is_vector() || vector.bd != 1 || vector.rows() != matrix.rows())
    return false;
  if (row.nd != 2 || row.rows() != 1 || row.cols() != matrix.rows() || row.bd != 1) return false;
  if (g.node(keys).is(kWeight) || g.node(query).is(kWeight)) return false;
  r.absorb(sum, tanh);
  r.absorb(tanh, product);
  const NodeId args[] = {v, keys, query};
  r.replace(product, scores_, args, 3);
  return true;
}

}  // namespace

std::unique_ptr<Pass> fold_attention() { return std::make_unique<FoldAttention>(); }

}  // namespace dnl
