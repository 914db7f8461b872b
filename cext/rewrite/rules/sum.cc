#include "rewrite/rules/sum.h"

#include <algorithm>

#include "rewrite/affine.h"

namespace dnl {
namespace {

struct Ops {
  OpId add = op_by_name("add"), sum = op_by_name("esum"), affine = op_by_name("affine_transform"), products = op_by_name("_products");
};
const Ops& ops() {
  static const Ops all;
  return all;
}

// Does it map nothing but rows of tables?
bool of_rows(const Graph& g, NodeId map) {
  return !any_vector(g, map, [&](NodeId x) { return g.signature(x).leaf != Leaf::Lookup; });
}

}  // namespace

void SumFolder::begin(const Graph& g, NodeId from) {
  from_ = from;
  sums_.clear();
  size_.assign(g.size() - from, Size{0, 0, 0, false});
  sort_.assign(g.signatures(), kUnknown);
}

bool SumFolder::is_sum(const Signature& sig) {
  return sig.leaf == Leaf::None && !sig.alias && (sig.op == ops().add || sig.op == ops().sum) && sig.nargs <= kMostTerms;
}

SumFolder::Sort SumFolder::judge(const Graph& g, NodeId i) {
  if (!is_affine(g.signature(i)) || !maps_vectors(g, i)) return kOther;
  return any_vector(g, i, [&](NodeId x) { return g.dim(x).rows() > kShortRow; }) ? kLongMap : kMap;
}

// Keeps those with a map somewhere.
void SumFolder::see(const Graph& g, NodeId i) {
  const NodeId* args = g.operands(i);
  for (u32 j = 0; j < g.nargs(i); ++j) {
    const NodeId a = args[j];
    if (a < from_ || (!size_[a - from_].terms && sort(g, a) == kOther)) continue;
    size_[i - from_].terms = 1;
    return sums_.push_back(i);
  }
}

// Of the shape of the sum, has not run, and may become a part of it.
bool SumFolder::is_part(const Graph& g, const Vec<u8>& list, NodeId a, NodeId of) const {
  return g.foldable(a) && g.node(a).dim == g.node(of).dim && list[a - from_] == list[of - from_];
}

// Takes in sums under it as far as there is room.
void SumFolder::measure(const Graph& g, const Vec<u8>& list, NodeId i) {
  Size size{static_cast<u8>(g.nargs(i)), 0, 0, false};
  for (u32 j = 0; j < g.nargs(i); ++j) {
    const NodeId a = g.operands(i)[j];
    if (a < from_) continue;
    Size& below = size_[a - from_];
    if (below.terms) {
      if (size.terms - 1u + below.terms > kMostTerms || !is_part(g, list, a, i)) continue;
      below.under = true;
      size.terms = static_cast<u8>(size.terms - 1 + below.terms);
      size.maps = static_cast<u8>(size.maps + below.maps);
      size.row_maps = static_cast<u8>(size.row_maps + below.row_maps);
    } else if (const Sort s = sort(g, a); s != kOther) {
      if (g.readers(a) > 1) read_often_[g.node(a).sig] = true;
      ++(s == kLongMap && of_rows(g, a) ? size.row_maps : size.maps);
    }
  }
  size_[i - from_] = size;
}

// Two maps, or one and what may be a bias.
bool SumFolder::promises(const Size& size) {
  const u32 maps = size.maps ? size.maps : size.row_maps;
  return maps > 1 || (maps == 1 && size.terms == 2);
}

void SumFolder::gather(const Graph& g, const Vec<u8>& list, NodeId i, NodeId root) {
  if (i != root) inner_.push_back(i);
  for (u32 j = 0; j < g.nargs(i); ++j) {
    const NodeId a = g.operands(i)[j];
    if (a < from_) others_.push_back(a);
    else if (size_[a - from_].under) gather(g, list, a, root);
    else if (takes(g, list, a, root)) maps_.push_back(a);
    else others_.push_back(a);
  }
}

// A sum that has been rewritten has a signature that there was not when these were counted.
bool SumFolder::takes(const Graph& g, const Vec<u8>& list, NodeId a, NodeId root) {
  return !size_[a - from_].terms && sort(g, a) != kOther && is_part(g, list, a, root) && !read_often_[g.node(a).sig];
}

// Those for which f holds; the rest are other terms.
template <class F>
void SumFolder::keep_maps(F f) {
  u32 left = 0;
  for (NodeId m : maps_) {
    if (f(m)) maps_[left++] = m;
    else others_.push_back(m);
  }
  maps_.resize(left);
}

// That of the first map that has one, which is the only one then, or else a parameter among the other terms, where that is of use.
NodeId SumFolder::take_bias(const Graph& g) {
  NodeId bias = kNoNode;
  keep_maps([&](NodeId m) {
    const bool has = has_bias(g.signature(m)), another = has && bias != kNoNode;
    if (has && !another) bias = g.operands(m)[0];
    return !another;
  });
  if (bias != kNoNode || (maps_.size() == 1 && others_.size() > 1)) return bias;
  const bool differentiated = std::any_of(maps_.begin(), maps_.end(), [&](NodeId m) { return g.node(m).is(kNeedsGrad); });
  for (NodeId& b : others_) {
    const Dim& d = g.dim(b);
    if (g.signature(b).leaf != Leaf::Param || d.nd != 1 || d.bd != 1) continue;
    if (g.node(b).is(kNeedsGrad) && !differentiated && others_.size() > 1) continue;  // the map would not run backward
    bias = b;
    std::copy(&b + 1, others_.end(), &b);
    others_.pop_back();
    break;
  }
  return bias;
}

bool SumFolder::fold(Graph& g, const Vec<u8>& list, NodeId root) {
  maps_.clear();
  others_.clear();
  inner_.clear();
  gather(g, list, root, root);
  const Size& size = size_[root - from_];
  if (size.maps && size.row_maps) keep_maps([&](NodeId m) { return sort(g, m) == kMap || !of_rows(g, m); });
  const NodeId bias = take_bias(g);
  if (maps_.empty() || (maps_.size() == 1 && (bias == kNoNode || has_bias(g.signature(maps_[0]))))) return false;
  args_.clear();
  if (bias != kNoNode) args_.push_back(bias);
  for (NodeId m : maps_)
    for (u32 j = has_bias(g.signature(m)); j < g.nargs(m); ++j) args_.push_back(g.operands(m)[j]);
  if (args_.size() > kMostArgs) return false;
  // All that maps read stands before the last of them.
  const NodeId place = others_.empty() ? root : *std::max_element(maps_.begin(), maps_.end());
  for (NodeId m : maps_)
    if (m != place) g.mark_fused(m, place);
  for (NodeId i : inner_) g.mark_fused(i, root);
  g.replace(place, bias == kNoNode ? ops().products : ops().affine, args_.data(), static_cast<int>(args_.size()), nullptr, 0, nullptr, 0);
  if (others_.empty()) return true;
  args_.clear();
  args_.push_back(place);
  for (NodeId a : others_) args_.push_back(a);
  g.replace(root, args_.size() == 2 ? ops().add : ops().sum, args_.data(), static_cast<int>(args_.size()), nullptr, 0, nullptr, 0);
  return true;
}

bool SumFolder::finish(Graph& g, const Vec<u8>& list) {
  if (sums_.empty()) return false;
  read_often_.assign(g.signatures(), false);
  bool any_promises = false;
  for (NodeId i : sums_) {
    if (!g.is_op(i)) continue;
    measure(g, list, i);
    any_promises |= promises(size_[i - from_]);
  }
  bool any = false;
  for (u32 k = 0; any_promises && k < sums_.size(); ++k) {
    const NodeId i = sums_[k];
    const Size& size = size_[i - from_];
    if (!size.under && promises(size)) any |= fold(g, list, i);
  }
  return any;
}

}  // namespace dnl
