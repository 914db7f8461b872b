// Folding: a loss becomes one node with the map that makes its scores, when nobody else can ever ask for these.
//
// pickneglogsoftmax of affine_transform([b, W, x]), of W * x + b and of W * x: ops/affine_loss.cc makes the scores
// piece by piece and uses them while they are at hand.
#include "rewrite/passes.h"

namespace dnl {
namespace {

struct Ops {
  OpId loss = op_by_name("pickneglogsoftmax"), folded = op_by_name("_affine_loss"),
       affine = op_by_name("affine_transform"), product = op_by_name("matmul"), sum = op_by_name("add");
};
const Ops& ops() {
  static const Ops all;
  return all;
}

struct Map {
  NodeId x, w, bias;  // bias: kNoNode when there is none
};

// A vector, or a mini-batch of them, times a matrix that all members share, plus at most a vector that they share, too.
bool is_map(const Graph& g, NodeId i, Map* map) {
  const Signature& sig = g.signature(i);
  const bool affine = sig.op == ops().affine;
  if (affine ? sig.nargs != 3 : sig.op != ops().product) return false;
  const NodeId* args = g.operands(i) + affine;
  *map = {args[1], args[0], affine ? g.operands(i)[0] : kNoNode};
  const u32 s = g.node(i).sig;
  const Dim &w = g.dim(map->w), &x = g.dim(map->x);
  if (!g.arg_shared(s, affine) || g.arg_shared(s, affine + 1u) || w.bd != 1 || !x.is_vector() || x.bd != g.dim(i).bd)
    return false;
  return !affine || (g.arg_shared(s, 0) && g.dim(map->bias).like(Dim{w.rows()}) && g.dim(map->bias).bd == 1);
}

// W * x + b, of a parameter b; the product of it, or kNoNode.
NodeId biased_product(const Rewriter& r, NodeId i, Map* map) {
  const Graph& g = r.graph();
  if (g.signature(i).op != ops().sum) return kNoNode;
  for (u32 j = 0; j < 2; ++j) {
    const NodeId product = g.operands(i)[j], bias = g.operands(i)[1 - j];
    if (g.signature(bias).leaf != Leaf::Param || !r.absorbable(product, i) || !is_map(g, product, map) ||
        map->bias != kNoNode)
      continue;
    map->bias = bias;
    return g.dim(bias).like(Dim{g.dim(map->w).rows()}) && g.dim(i).like(g.dim(product)) ? product : kNoNode;
  }
  return kNoNode;
}

class FoldLosses final : public Pass {
 public:
  u32 run(Rewriter& r, const Lane& lane) override {
    u32 count = 0;
    for (NodeId i : lane.of[Kind::kLoss]) count += !r.graph().node(i).is(kInner) && fold(r, i);
    return count;
  }

 private:
  static bool fold(Rewriter& r, NodeId loss) {
    const Graph& g = r.graph();
    if (g.signature(loss).op != ops().loss || !g.is_op(loss)) return false;
    const NodeId scores = g.operands(loss)[0];
    if (!r.absorbable(scores, loss)) return false;
    Map map;
    const NodeId product = biased_product(r, scores, &map);
    if (product != kNoNode)
      r.absorb(product, scores);
    else if (!is_map(g, scores, &map))
      return false;
    r.absorb(scores, loss);
    const NodeId args[] = {map.x, map.w, map.bias};
    r.replace(loss, ops().folded, args, map.bias == kNoNode ? 2 : 3);
    return true;
  }
};

}  // namespace

// One that has been folded takes mini-batches still.
bool is_loss(const Signature& sig) {
  return sig.leaf == Leaf::None && (sig.op == ops().loss || sig.op == ops().folded);
}

std::unique_ptr<Pass> fold_losses() { return std::make_unique<FoldLosses>(); }

}  // namespace dnl
