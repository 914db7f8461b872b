#include "rewrite/rules/attention.h"

#include <utility>

namespace dnl {
namespace {

struct Ops {
  OpId product = op_by_name("matmul"), tanh = op_by_name("tanh"), sum = op_by_name("add"), scores = op_by_name("_attention_scores");
};
const Ops& ops() {
  static const Ops all;
  return all;
}

}  // namespace

void AttentionFolder::begin(NodeId from) {
  from_ = from;
  found_.clear();
}

// A node of this op that has not run and may become a part of its reader.
bool AttentionFolder::is_part(const Graph& g, NodeId i, OpId op) const {
  return i >= from_ && g.foldable(i) && g.signature(i).op == op;
}

bool AttentionFolder::see(Graph& g, NodeId product) {
  const Dim& out = g.dim(product);
  if (g.signature(product).op != ops().product || out.nd != 2 || out.rows() != 1 || out.bd != 1) return false;
  const NodeId v = g.operands(product)[0], tanh = g.operands(product)[1];
  if (!g.arg_shared(g.node(product).sig, 0) || !is_part(g, tanh, ops().tanh)) return false;
  const NodeId sum = g.operands(tanh)[0];
  if (!is_part(g, sum, ops().sum)) return false;
  NodeId keys = g.operands(sum)[0], query = g.operands(sum)[1];
  if (!g.dim(query).is_vector()) std::swap(keys, query);
  const Dim &matrix = g.dim(keys), &vector = g.dim(query), &row = g.dim(v);
  if (matrix.nd > 2 || matrix.bd != 1 || !vector.is_vector() || vector.bd != 1 || vector.rows() != matrix.rows()) return false;
  if (row.nd != 2 || row.rows() != 1 || row.cols() != matrix.rows() || row.bd != 1) return false;
  if (g.node(keys).is(kWeight) || g.node(query).is(kWeight)) return false;
  g.mark_fused(sum, tanh);
  g.mark_fused(tanh, product);
  found_.push_back({product, v, keys, query});
  return true;
}

bool AttentionFolder::finish(Graph& g) {
  for (const Scores& s : found_) {
    const NodeId args[] = {s.v, s.keys, s.query};
    g.replace(s.node, ops().scores, args, 3, nullptr, 0, nullptr, 0);
  }
  return !found_.empty();
}

}  // namespace dnl
