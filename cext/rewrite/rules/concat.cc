#include "rewrite/rules/concat.h"

#include "rewrite/affine.h"

namespace dnl {
namespace {

struct Ops {
  OpId affine_parts = op_by_name("_affine_parts"), product_parts = op_by_name("_product_parts");
};
const Ops& ops() {
  static const Ops all;
  return all;
}

// Those nodes for which f holds.
template <class F>
void keep(Vec<NodeId>& nodes, F f) {
  u32 left = 0;
  for (NodeId i : nodes)
    if (f(i)) nodes[left++] = i;
  nodes.resize(left);
}

}  // namespace

void ConcatFolder::begin(NodeId from) {
  from_ = from;
  any_ = false;
  products_.clear();
}

bool ConcatFolder::is_concatenation(const Signature& sig) {
  return sig.leaf == Leaf::None && !sig.alias && op_def(sig.op).concatenates;
}

// A concatenation of a few vectors that has not run and that no expression refers to. One of them at least is looked up: products of
// parts are as fast as those of the whole only where some of them are spared.
bool ConcatFolder::is_parts(const Graph& g, NodeId i) const {
  const Node& n = g.node(i);
  const Signature& sig = g.signature(i);
  if (i < from_ || !is_concatenation(sig)) return false;
  if (!n.is(kCounted) || n.handles || n.readers == Node::kMany || n.is(kFused | kInner | kWeight)) return false;
  if (sig.nargs < 2 || sig.nargs > kMostParts || g.key(n.sig)[0].i != 0) return false;
  bool looked_up = false;
  for (u32 j = 0; j < sig.nargs; ++j) {
    const NodeId a = g.operands(i)[j];
    const Dim& part = g.dim(a);
    looked_up |= g.signature(a).leaf == Leaf::Lookup;
    if (!part.is_vector() || part.bd != g.dim(i).bd || part.size() < kLeastPart * part.bd) return false;
  }
  return looked_up;
}

void ConcatFolder::count_reads(const Graph& g, NodeId product) {
  any_vector(g, product, [&](NodeId x) {
    if (is_parts(g, x)) reads_[x - from_] += reads_[x - from_] < Node::kMany;
    return false;  // go on
  });
}

void ConcatFolder::look_at(const Graph& g, NodeId i) {
  if (g.nargs(i) > kMostArgs || !maps_vectors(g, i)) return;
  if (any_vector(g, i, [&](NodeId x) { return is_parts(g, x); })) products_.push_back(i);
}

// Do all of its readers take its parts?
bool ConcatFolder::folds(const Graph& g, NodeId concatenation) const {
  return reads_[concatenation - from_] == g.readers(concatenation);
}

// A signature in two kinds of nodes would be two batches for one.
void ConcatFolder::keep_whole_signatures(const Graph& g) {
  of_signature_.assign(g.signatures(), 0);
  for (NodeId i = from_; i < g.size(); ++i)
    if (g.is_op(i)) ++of_signature_[g.node(i).sig];
  for (NodeId i : products_) --of_signature_[g.node(i).sig];
  keep(products_, [&](NodeId i) { return of_signature_[g.node(i).sig] == 0; });
}

bool ConcatFolder::finish(Graph& g) {
  // Others have become parts of something else.
  keep(products_, [&](NodeId i) { return g.is_op(i) && is_affine(g.signature(i)); });
  if (products_.empty()) return false;
  keep_whole_signatures(g);
  reads_.assign(g.size() - from_, 0);
  for (NodeId i : products_) count_reads(g, i);
  keep(products_, [&](NodeId i) { return any_vector(g, i, [&](NodeId x) { return is_parts(g, x) && folds(g, x); }); });
  for (NodeId i : products_) rewrite(g, i);
  return !products_.empty();
}

void ConcatFolder::rewrite(Graph& g, NodeId i) {
  const Signature& sig = g.signature(i);
  const bool bias = has_bias(sig);
  NodeId args[1 + 2 * kMostArgs * kMostParts];
  Word key[1 + kMostArgs * kMostParts];
  u32 n = 0, parts = 0;
  auto add = [&](NodeId w, NodeId x, u32 column) {
    args[n++] = w;
    args[n++] = x;
    key[++parts].u = column;
  };
  const NodeId* from = g.operands(i);
  if (bias) args[n++] = from[0];
  for (u32 j = bias; j < sig.nargs; j += 2) {
    const NodeId x = from[j + 1];
    // One that is fused was the other products' before.
    if (!g.node(x).is(kFused) && !(is_parts(g, x) && folds(g, x))) {
      add(from[j], x, 0);
      continue;
    }
    // Its parts are read by each of the products instead of by itself, and the matrix once for each.
    const bool first = !g.node(x).is(kFused);
    u32 column = 0;
    for (u32 p = 0; p < g.nargs(x); ++p) {
      const NodeId part = g.operands(x)[p];
      add(from[j], part, column);
      column += g.dim(part).rows();
      if (p) g.reads_once_more(from[j]);
      if (!first) g.reads_once_more(part);
    }
    g.mark_fused(x, i);
  }
  key[0].u = parts;
  g.replace(i, bias ? ops().affine_parts : ops().product_parts, args, static_cast<int>(n), key, static_cast<int>(parts + 1), nullptr, 0);
}

}  // namespace dnl
