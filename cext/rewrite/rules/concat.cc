// Folding: a product of a matrix and a concatenation becomes products of parts of the matrix, when nobody else can ever
// ask for the concatenation.
//
// W * concatenate([word, tag]) reads word and tag where they lie (ops/affine.cc): nothing is copied, and vectors
// of words that repeat are multiplied once. Only where something is looked up.
#include "rewrite/affine.h"
#include "rewrite/passes.h"

namespace dnl {
namespace {

constexpr u32 kMostParts = 4, kMostArgs = 16;
constexpr std::size_t kLeastPart = 16;  // floats

class FoldConcatenations final : public Pass {
 public:
  void begin(const Rewriter&, PassSet) override { reads_.clear(); }
  u32 run(Rewriter& r, const Lane& lane) override;
  void release() override { release_all(products_, reads_, folded_, of_signature_, written_); }

 private:
  bool may_spare(const Graph& g, const Vec<NodeId>& concatenations);
  bool is_parts(const Rewriter& r, NodeId i) const;
  // May the product take it apart? Nodes of other lanes run without waiting for it.
  bool is_parts_of(const Rewriter& r, NodeId x, NodeId product) const {
    return is_parts(r, x) && r.same_lane(x, product);
  }
  void find_products(Rewriter& r, const Lane& lane);
  void keep_whole_signatures(const Graph& g, const Lane& lane);
  bool folds(const Rewriter& r, NodeId x, NodeId product) const;
  void rewrite(Rewriter& r, NodeId product);

  const OpId affine_ = op_by_name("_affine");
  Vec<NodeId> products_;  // that read one
  Vec<u8> reads_;         // by node: products that read it and can be rewritten
  Vec<NodeId> folded_;    // concatenations that the product at hand takes apart
  AffineWriter written_;
  Vec<u32> of_signature_;  // nodes of each, while they are counted
};

// May a vector occur twice? Not where each concatenation is the only one of its shapes.
bool FoldConcatenations::may_spare(const Graph& g, const Vec<NodeId>& concatenations) {
  of_signature_.assign(g.signatures(), 0);
  for (NodeId i : concatenations)
    if (of_signature_[g.node(i).sig]++ || g.dim(i).bd > 1) return true;
  return false;
}

// A concatenation of a few vectors that nobody else can ask for. One of them at least is looked up: products of parts
// are as fast as those of the whole only where some of them are spared.
bool FoldConcatenations::is_parts(const Rewriter& r, NodeId i) const {
  if (!r.hidden(i)) return false;
  const Graph& g = r.graph();
  const Signature& sig = g.signature(i);
  if (!is_concatenation(sig) || sig.nargs < 2 || sig.nargs > kMostParts || g.key(g.node(i).sig)[0].i != 0) return false;
  bool looked_up = false;
  for (u32 j = 0; j < sig.nargs; ++j) {
    const NodeId a = g.operands(i)[j];
    const Dim& part = g.dim(a);
    looked_up |= g.is_row(a);
    if (!part.is_vector() || part.bd != g.dim(i).bd || part.size() < kLeastPart * part.bd) return false;
  }
  return looked_up;
}

// A signature in two kinds of nodes would be two batches for one.
void FoldConcatenations::keep_whole_signatures(const Graph& g, const Lane& lane) {
  of_signature_.assign(g.signatures(), 0);
  for (const NodeId* i = lane.begin; i != lane.end; ++i)
    if (g.is_op(*i)) ++of_signature_[g.node(*i).sig];
  for (NodeId i : products_) --of_signature_[g.node(i).sig];
  products_.keep_if([&](NodeId i) { return of_signature_[g.node(i).sig] == 0; });
}

void FoldConcatenations::find_products(Rewriter& r, const Lane& lane) {
  const Graph& g = r.graph();
  products_.clear();
  for (NodeId i : lane.of[Kind::kProduct]) {
    if (!g.is_op(i) || !r.kind(i).maps || g.nargs(i) > kMostArgs)
      continue;  // others have become parts of something else
    if (AffineMap(g, i).any_vector([&](NodeId x) { return is_parts_of(r, x, i); })) products_.push_back(i);
  }
}

// Do all of its readers, one of which the product is, take its parts?
bool FoldConcatenations::folds(const Rewriter& r, NodeId x, NodeId product) const {
  return is_parts_of(r, x, product) && reads_[r.at(x)] == r.graph().readers(x);
}

u32 FoldConcatenations::run(Rewriter& r, const Lane& lane) {
  const Graph& g = r.graph();
  if (!may_spare(g, lane.of[Kind::kConcatenation])) return 0;
  bool any = false;
  for (NodeId i : lane.of[Kind::kConcatenation]) any = any || is_parts(r, i);
  if (!any) return 0;
  find_products(r, lane);
  if (products_.empty()) return 0;
  keep_whole_signatures(g, lane);
  if (reads_.empty()) reads_.assign(r.count(), 0);
  for (NodeId i : products_)
    AffineMap(g, i).any_vector([&](NodeId x) {
      if (is_parts_of(r, x, i)) reads_[r.at(x)] += reads_[r.at(x)] < Node::kMany;
      return false;  // go on
    });
  products_.keep_if([&](NodeId i) { return AffineMap(g, i).any_vector([&](NodeId x) { return folds(r, x, i); }); });
  for (NodeId i : products_) rewrite(r, i);
  return static_cast<u32>(products_.size());
}

void FoldConcatenations::rewrite(Rewriter& r, NodeId i) {
  const Graph& g = r.graph();
  const AffineMap map(g, i);
  // One that is fused was another product's before.
  const auto in_parts = [&](NodeId x) { return g.node(x).is(kFused) || folds(r, x, i); };
  written_.begin();
  for (u32 t = 0; t < map.terms(); ++t) {
    const NodeId x = map.vector(t);
    if (!in_parts(x)) {
      written_.add_vector(x, 0);
      continue;
    }
    u32 column = 0;
    for (u32 p = 0; p < g.nargs(x); ++p) {
      const NodeId part = g.operands(x)[p];
      written_.add_vector(part, column);
      column += g.dim(part).rows();
    }
  }
  if (map.has_bias()) written_.add_weight(map.bias());
  for (u32 t = 0; t < map.terms(); ++t)
    for (u32 k = in_parts(map.vector(t)) ? g.nargs(map.vector(t)) : 1; k > 0; --k) written_.add_weight(map.matrix(t));
  folded_.clear();
  map.any_vector([&](NodeId x) {
    if (folds(r, x, i)) folded_.push_back(x);
    return false;  // go on
  });
  for (NodeId x : folded_)
    if (!g.node(x).is(kFused)) r.absorb(x, i);  // a product may read it twice
  written_.write(r, i, affine_, map.has_bias());
}

}  // namespace

bool is_concatenation(const Signature& sig) {
  return sig.leaf == Leaf::None && !sig.alias && op_def(sig.op).concatenates;
}

std::unique_ptr<Pass> fold_concatenations() { return std::make_unique<FoldConcatenations>(); }

}  // namespace dnl
