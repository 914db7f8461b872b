// Folding: a sum of products and a bias becomes one affine map, when nobody else can ever ask for its terms.
//
// W * x + U * h + b, written with operators, is what affine_transform([b, W, x, U, h]) is: products add up where they
// are made, and what flows back into them is one gradient, not a copy for each. Without a bias it is _affine
// (ops/affine.cc). What else is added stays in the sum.
#include <algorithm>

#include "rewrite/affine.h"
#include "rewrite/passes.h"

namespace dnl {
namespace {

constexpr u32 kMostTerms = 8, kMostArgs = 32;
// Products with longer rows of a table stay out of a sum with what is computed: all words of all sentences are one
// batch, in which words repeat.
constexpr u32 kShortRow = 128;

struct Ops {
  OpId add = op_by_name("add"), sum = op_by_name("esum"), affine = op_by_name("affine_transform"),
       map = op_by_name("_affine");
};
const Ops& ops() {
  static const Ops all;
  return all;
}

// Does it map nothing but rows of tables?
bool of_rows(const Graph& g, NodeId map) {
  return !AffineMap(g, map).any_vector([&](NodeId x) { return !g.is_row(x); });
}

class FoldSums final : public Pass {
 public:
  void begin(const Rewriter& r, PassSet) override { size_.assign(r.count(), Size{0, 0, 0, false}); }
  u32 run(Rewriter& r, const Lane& lane) override;
  void release() override { release_all(sums_, size_, read_often_, maps_, others_, inner_, args_, map_); }

 private:
  // Of a sum: terms, with those of the sums under it; those that are maps, of long rows alone, or not; is it under
  // another one? No terms: not a sum with a map.
  struct Size {
    u8 terms, maps, row_maps;
    bool under;
  };
  bool is_part(const Rewriter& r, NodeId a, NodeId of) const;
  bool measure(Rewriter& r, NodeId i);
  static bool promises(const Size& size);
  void gather(Rewriter& r, NodeId i, NodeId root);
  bool takes(Rewriter& r, NodeId a, NodeId sum) const;
  template <class F>
  void keep_maps(F f);
  NodeId take_bias(const Graph& g);
  bool fold(Rewriter& r, NodeId root);
  void write_map(Rewriter& r, NodeId place, NodeId bias);
  void rewrite(Rewriter& r, NodeId root, NodeId bias);

  Vec<NodeId> sums_;
  Vec<Size> size_;                     // by node
  Vec<u8> read_often_;                 // by signature: such a map is a term of some sum, and is read elsewhere, too
  Vec<NodeId> maps_, others_, inner_;  // terms of the sum at hand, and the sums under it
  Vec<NodeId> args_;
  AffineWriter map_;
};

// Of the shape of the sum, and may become a part of it.
bool FoldSums::is_part(const Rewriter& r, NodeId a, NodeId of) const {
  return r.graph().node(a).dim == r.graph().node(of).dim && r.absorbable(a, of);
}

// Takes in sums under it as far as there is room. False: neither it nor one of them has a map.
bool FoldSums::measure(Rewriter& r, NodeId i) {
  const Graph& g = r.graph();
  const u32 nargs = g.nargs(i);
  const NodeId* args = g.operands(i);
  Size size{static_cast<u8>(nargs), 0, 0, false};
  bool any = false;
  for (u32 j = 0; j < nargs; ++j) {
    const NodeId a = args[j];
    if (a < r.first()) continue;
    Size& below = size_[r.at(a)];
    if (below.terms) {
      any = true;
      if (size.terms - 1u + below.terms > kMostTerms || !is_part(r, a, i)) continue;
      below.under = true;
      size.terms = static_cast<u8>(size.terms - 1 + below.terms);
      size.maps = static_cast<u8>(size.maps + below.maps);
      size.row_maps = static_cast<u8>(size.row_maps + below.row_maps);
    } else if (const Kind& kind = r.kind(a); kind.maps) {
      any = true;
      if (g.readers(a) > 1) read_often_[g.node(a).sig] = true;
      ++(kind.long_rows && of_rows(g, a) ? size.row_maps : size.maps);
    }
  }
  if (any) size_[r.at(i)] = size;
  return any;
}

// Two maps, or one and what may be a bias.
bool FoldSums::promises(const Size& size) {
  const u32 maps = size.maps ? size.maps : size.row_maps;
  return maps > 1 || (maps == 1 && size.terms == 2);
}

void FoldSums::gather(Rewriter& r, NodeId i, NodeId root) {
  const Graph& g = r.graph();
  if (i != root) inner_.push_back(i);
  for (u32 j = 0; j < g.nargs(i); ++j) {
    const NodeId a = g.operands(i)[j];
    if (a < r.first())
      others_.push_back(a);
    else if (size_[r.at(a)].under)
      gather(r, a, root);
    else if (takes(r, a, i))
      maps_.push_back(a);
    else
      others_.push_back(a);
  }
}

// A sum that has been rewritten is no map that was counted.
bool FoldSums::takes(Rewriter& r, NodeId a, NodeId sum) const {
  return !size_[r.at(a)].terms && r.kind(a).maps && is_part(r, a, sum) && !read_often_[r.graph().node(a).sig];
}

// Those for which f holds; the rest are other terms.
template <class F>
void FoldSums::keep_maps(F f) {
  maps_.keep_if([&](NodeId m) {
    const bool stays = f(m);
    if (!stays) others_.push_back(m);
    return stays;
  });
}

// That of the first map that has one, which is the only one then, or else a parameter among the other terms, where that
// is of use.
NodeId FoldSums::take_bias(const Graph& g) {
  NodeId bias = kNoNode;
  keep_maps([&](NodeId m) {
    const AffineMap map(g, m);
    const bool another = map.has_bias() && bias != kNoNode;
    if (map.has_bias() && !another) bias = map.bias();
    return !another;
  });
  if (bias != kNoNode || (maps_.size() == 1 && others_.size() > 1)) return bias;
  const bool differentiated =
      std::any_of(maps_.begin(), maps_.end(), [&](NodeId m) { return g.node(m).is(kNeedsGrad); });
  for (NodeId& b : others_) {
    const Dim& d = g.dim(b);
    if (g.signature(b).leaf != Leaf::Param || d.nd != 1 || d.bd != 1) continue;
    const bool repeated = !maps_.empty() && d.rows() != g.dim(maps_[0]).rows();  // one number for all rows
    if (repeated) continue;
    if (g.node(b).is(kNeedsGrad) && !differentiated && others_.size() > 1) continue;  // the map would not run backward
    bias = b;
    std::copy(&b + 1, others_.end(), &b);
    others_.pop_back();
    break;
  }
  return bias;
}

bool FoldSums::fold(Rewriter& r, NodeId root) {
  const Graph& g = r.graph();
  maps_.clear();
  others_.clear();
  inner_.clear();
  gather(r, root, root);
  const Size& size = size_[r.at(root)];
  if (size.maps && size.row_maps) keep_maps([&](NodeId m) { return !r.kind(m).long_rows || !of_rows(g, m); });
  const NodeId bias = take_bias(g);
  if (maps_.empty() || (maps_.size() == 1 && (bias == kNoNode || AffineMap(g, maps_[0]).has_bias()))) return false;
  const auto broadcast = [&](NodeId a) { return !g.dim(a).like(g.dim(root)); };
  if (others_.size() > 1 && std::any_of(others_.begin(), others_.end(), broadcast)) return false;  // no op has these
  u32 terms = 0;
  for (NodeId m : maps_) terms += AffineMap(g, m).terms();
  if (2 * terms + (bias != kNoNode) > kMostArgs) return false;
  rewrite(r, root, bias);
  return true;
}

// The terms of all maps, one after the other.
void FoldSums::write_map(Rewriter& r, NodeId place, NodeId bias) {
  const Graph& g = r.graph();
  const auto each_term = [&](auto f) {
    for (NodeId m : maps_)
      for (u32 t = 0; t < AffineMap(g, m).terms(); ++t) f(AffineMap(g, m), t);
  };
  if (bias == kNoNode) {
    map_.begin();
    each_term([&](const AffineMap& m, u32 t) { map_.add_vector(m.vector(t), 0); });
    each_term([&](const AffineMap& m, u32 t) { map_.add_weight(m.matrix(t)); });
    return map_.write(r, place, ops().map, false);
  }
  args_.clear();
  args_.push_back(bias);
  each_term([&](const AffineMap& m, u32 t) {
    args_.push_back(m.matrix(t));
    args_.push_back(m.vector(t));
  });
  r.replace(place, ops().affine, args_.data(), static_cast<u32>(args_.size()));
}

// All that maps read stands before the last of them, which becomes the map of all unless it is all that is left of the
// sum.
void FoldSums::rewrite(Rewriter& r, NodeId root, NodeId bias) {
  const NodeId place = others_.empty() ? root : *std::max_element(maps_.begin(), maps_.end());
  for (NodeId m : maps_)
    if (m != place) r.absorb(m, place);
  for (NodeId i : inner_) r.absorb(i, root);
  write_map(r, place, bias);
  if (others_.empty()) return;
  args_.clear();
  args_.push_back(place);
  args_.append(others_);
  r.replace(root, args_.size() == 2 ? ops().add : ops().sum, args_.data(), static_cast<u32>(args_.size()));
}

u32 FoldSums::run(Rewriter& r, const Lane& lane) {
  const Graph& g = r.graph();
  sums_.clear();
  read_often_.assign(g.signatures(), false);
  bool any_promises = false;
  for (NodeId i : lane.of[Kind::kSum]) {
    if (!g.is_op(i) || !measure(r, i)) continue;
    sums_.push_back(i);
    any_promises |= promises(size_[r.at(i)]);
  }
  u32 count = 0;
  for (u32 k = 0; any_promises && k < sums_.size(); ++k) {
    const Size& size = size_[r.at(sums_[k])];
    if (!size.under && promises(size)) count += fold(r, sums_[k]);
  }
  return count;
}

}  // namespace

bool is_sum(const Signature& sig) {
  return sig.leaf == Leaf::None && !sig.alias && (sig.op == ops().add || sig.op == ops().sum) &&
         sig.nargs <= kMostTerms;
}

bool has_long_rows(const Graph& g, NodeId map) {
  return AffineMap(g, map).any_vector([&](NodeId x) { return g.dim(x).rows() > kShortRow; });
}

std::unique_ptr<Pass> fold_sums() { return std::make_unique<FoldSums>(); }

}  // namespace dnl
