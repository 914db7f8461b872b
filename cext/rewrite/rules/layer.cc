// Folding: a layer over a concatenation becomes one node, when nobody else can ever ask for what is between.
//
// tanh(affine_transform([b, W, concatenate([left, right])])), and other functions whose gradients need their values
// alone: ops/layer.cc. Three batches become one.
#include <algorithm>

#include "rewrite/affine.h"
#include "rewrite/passes.h"

namespace dnl {
namespace {

constexpr u32 kMostParts = 8;

class FoldLayers final : public Pass {
 public:
  u32 run(Rewriter& r, const Lane& lane) override;
  void release() override { release_all(layers_, maps_); }

 private:
  struct Layer {
    NodeId of, map, parts;  // the function, the map, the concatenation
  };
  // Maps of a signature: all of them, and those of layers, which are alike if their functions and concatenations are.
  struct Maps {
    u32 all, in_layers, function, parts;
  };
  bool find(Rewriter& r, NodeId i, Layer* layer) const;
  bool is_parts(const Graph& g, NodeId i) const;
  void rewrite(Rewriter& r, const Layer& layer) const;

  const OpId affine_ = op_by_name("affine_transform"), layer_ = op_by_name("_layer");
  Vec<Layer> layers_;
  Vec<Maps> maps_;  // by signature
};

bool FoldLayers::is_parts(const Graph& g, NodeId i) const {
  const u32 s = g.node(i).sig, n = g.nargs(i);
  if (!is_concatenation(g.sig(s)) || n > kMostParts || g.key(s)[0].i != 0 || g.dim(i).bd != 1) return false;
  for (u32 j = 0; j < n; ++j)
    if (!g.dim(g.operands(i)[j]).is_vector()) return false;
  return true;
}

bool FoldLayers::find(Rewriter& r, NodeId i, Layer* layer) const {
  const Graph& g = r.graph();
  if (!g.is_op(i) || g.node(i).is(kInner)) return false;
  const Kind& kind = r.kind(i);
  if (kind.formula != Formula::Unary || !kind.reads_value_only || kind.constants) return false;
  const NodeId map = g.operands(i)[0];
  if (!r.absorbable(map, i) || g.signature(map).op != affine_ || g.nargs(map) != 3 || !r.kind(map).maps) return false;
  const NodeId parts = AffineMap(g, map).vector(0);
  if (!r.absorbable(parts, map) || !is_parts(g, parts)) return false;
  *layer = {i, map, parts};
  return true;
}

// All maps of a signature or none: taking some would turn one product into two.
u32 FoldLayers::run(Rewriter& r, const Lane& lane) {
  const Graph& g = r.graph();
  layers_.clear();
  Layer layer;
  for (NodeId i : lane.of[Kind::kElementwise])
    if (find(r, i, &layer)) layers_.push_back(layer);
  if (layers_.empty()) return 0;
  maps_.assign(g.signatures(), Maps{0, 0, 0, 0});
  for (const NodeId* i = lane.begin; i != lane.end; ++i)
    if (g.is_op(*i)) ++maps_[g.node(*i).sig].all;
  const auto same = [&](const Layer& l) -> bool {
    const Maps& maps = maps_[g.node(l.map).sig];
    return maps.function == g.node(l.of).sig && maps.parts == g.node(l.parts).sig;
  };
  for (const Layer& l : layers_) {
    Maps& maps = maps_[g.node(l.map).sig];
    if (!maps.in_layers) {
      maps.function = g.node(l.of).sig;
      maps.parts = g.node(l.parts).sig;
    }
    maps.in_layers += same(l);
  }
  layers_.keep_if([&](const Layer& l) {
    const Maps& maps = maps_[g.node(l.map).sig];
    return maps.in_layers == maps.all;
  });
  for (const Layer& l : layers_) rewrite(r, l);
  return static_cast<u32>(layers_.size());
}

void FoldLayers::rewrite(Rewriter& r, const Layer& l) const {
  const Graph& g = r.graph();
  const AffineMap map(g, l.map);
  NodeId args[2 + kMostParts] = {map.bias(), map.matrix(0)};
  const u32 n = g.nargs(l.parts);
  std::copy_n(g.operands(l.parts), n, args + 2);
  Word function;
  function.u = r.kind(l.of).id;
  r.absorb(l.parts, l.map);
  r.absorb(l.map, l.of);
  r.replace(l.of, layer_, args, 2 + n, &function, 1);
}

}  // namespace

std::unique_ptr<Pass> fold_layers() { return std::make_unique<FoldLayers>(); }

}  // namespace dnl
