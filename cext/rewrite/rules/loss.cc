#include "rewrite/rules/loss.h"

namespace dnl {
namespace {

struct Ops {
  OpId loss = op_by_name("pickneglogsoftmax"), folded = op_by_name("_affine_loss"), affine = op_by_name("affine_transform"),
       product = op_by_name("matmul"), sum = op_by_name("add");
};
const Ops& ops() {
  static const Ops all;
  return all;
}

}  // namespace

void LossFolder::begin(NodeId from) {
  from_ = from;
  losses_.clear();
}

bool LossFolder::is_loss(const Signature& sig) { return sig.leaf == Leaf::None && sig.op == ops().loss; }

// A vector, or a mini-batch of them, times a matrix that all members share, plus at most a vector that they share, too.
bool LossFolder::is_map(const Graph& g, NodeId i, Map* map) const {
  if (i < from_ || !g.foldable(i)) return false;
  const Signature& sig = g.signature(i);
  const bool affine = sig.op == ops().affine;
  if (affine ? sig.nargs != 3 : sig.op != ops().product) return false;
  const NodeId* args = g.operands(i) + affine;
  *map = {args[1], args[0], affine ? g.operands(i)[0] : kNoNode};
  const u32 s = g.node(i).sig;
  const Dim &w = g.dim(map->w), &x = g.dim(map->x);
  if (!g.arg_shared(s, affine) || g.arg_shared(s, affine + 1u) || w.bd != 1 || !x.is_vector() || x.bd != g.dim(i).bd) return false;
  return !affine || (g.arg_shared(s, 0) && g.dim(map->bias).like(Dim{w.rows()}) && g.dim(map->bias).bd == 1);
}

// W * x + b, of a parameter b.
bool LossFolder::is_biased_product(const Graph& g, NodeId i, Map* map) const {
  if (i < from_ || !g.foldable(i) || g.signature(i).op != ops().sum) return false;
  for (u32 j = 0; j < 2; ++j) {
    const NodeId product = g.operands(i)[j], bias = g.operands(i)[1 - j];
    if (g.signature(bias).leaf != Leaf::Param || !is_map(g, product, map) || map->bias != kNoNode) continue;
    map->bias = bias;
    return g.dim(bias).like(Dim{g.dim(map->w).rows()}) && g.dim(i).like(g.dim(product));
  }
  return false;
}

void LossFolder::see(Graph& g, NodeId loss) {
  const NodeId scores = g.operands(loss)[0];
  Map map;
  if (is_biased_product(g, scores, &map)) {
    for (u32 j = 0; j < 2; ++j)
      if (g.operands(scores)[j] != map.bias) g.mark_fused(g.operands(scores)[j], scores);
  } else if (!is_map(g, scores, &map)) {
    return;
  }
  g.mark_fused(scores, loss);
  losses_.push_back({loss, map});
}

bool LossFolder::finish(Graph& g) {
  for (const Loss& loss : losses_) {
    const NodeId args[] = {loss.map.x, loss.map.w, loss.map.bias};
    g.replace(loss.node, ops().folded, args, loss.map.bias == kNoNode ? 2 : 3, nullptr, 0, nullptr, 0);
  }
  return !losses_.empty();
}

}  // namespace dnl
