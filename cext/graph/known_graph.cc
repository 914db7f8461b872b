#include "graph/known_graph.h"

#include <algorithm>

#include "base/mix.h"

namespace dnl {
namespace {

// What `all` has from `begin` on.
template <class T>
void copy_from(Vec<T>& to, const Vec<T>& all, u32 begin) {
  to.copy(all.data() + begin, all.size() - begin);
}

// `to` keeps its first `made` and gets what the part, which begins at `begin`, has behind these.
template <class T>
void copy_behind(Vec<T>& to, const Vec<T>& part, u32 begin, u32 made) {
  to.resize(made);
  to.append(part.data() + (made - begin), part.size() - (made - begin));
}

// Are [from, to) of both, of which the part begins at `begin`, the same?
template <class T>
bool alike(const Vec<T>& all, const Vec<T>& part, u32 begin, std::size_t from, std::size_t to) {
  return from == to || std::memcmp(all.data() + from, part.data() + (from - begin), (to - from) * sizeof(T)) == 0;
}

// But for stamps, addresses and who refers to them.
bool same_record(const Node& a, const Node& b) {
  return a.sig == b.sig && a.args == b.args && a.member == b.member && a.producer == b.producer && a.root == b.root &&
         a.offset == b.offset && a.depth == b.depth && a.dim == b.dim && a.flags == b.flags && a.readers == b.readers;
}

// Of a node before the part: has a pass changed it?
bool changed(const Node& now, const Node& before) {
  return now.flags != before.flags || now.readers != before.readers ||
         (now.handles == Node::kMany && before.handles != Node::kMany);
}

}  // namespace

GraphSize GraphSize::of(const Graph& g) {
  auto size = [](const auto& v) { return static_cast<u32>(v.size()); };
  return {size(g.nodes_), size(g.operands_), size(g.words_),  size(g.sigs_),        size(g.keys_),
          size(g.dims_),  size(g.params_),   size(g.tables_), size(g.known_leaves_)};
}

// ---- at first sight ----------------------------------------------------------------------------------------------

void GraphLooks::see(const Graph& g, const GraphSize& from, u64 before) {
  u64 h = mix(before, g.size());
  for (NodeId i = from.nodes; i < g.size(); ++i) {
    const Node& n = g.node(i);
    h = mix(h, n.sig | static_cast<u64>(n.flags) << 32 | static_cast<u64>(n.handles != 0) << 48);
    for (u32 j = 0; j < g.nargs(i); ++j) h = mix(h, g.operands(i)[j]);
  }
  const NodeId* leaves = g.known_leaves().data() + from.leaves;
  const u32 n = static_cast<u32>(g.known_leaves().size()) - from.leaves;
  first.resize(n);
  hash = h;
  if (!n) return;
  std::size_t room = 16;
  while (room < 2 * n) room *= 2;
  slots_.assign(room, 0);
  for (u32 k = 0; k < n; ++k) {
    const u32 sig = g.node(leaves[k]).sig, word = g.member(leaves[k])->u;
    std::size_t b = mix(sig, word) >> 40 & (room - 1);
    auto same = [&](NodeId i) { return g.node(i).sig == sig && g.member(i)->u == word; };
    while (slots_[b] && !same(leaves[slots_[b] - 1])) b = (b + 1) & (room - 1);
    if (!slots_[b]) slots_[b] = k + 1;
    first[k] = slots_[b] - 1;
    h = mix(h, first[k]);
  }
  hash = h;
}

void MadeNodes::note(const Graph& g) {
  nodes.copy(&g.node(0), g.size());
  size = GraphSize::of(g);
}

// ---- one that is kept --------------------------------------------------------------------------------------------

KnownGraph::Range KnownGraph::words_of(const Graph& g, NodeId i) {
  const Signature& s = g.signature(i);
  const u32 begin = g.node(i).member;
  if (s.leaf != Leaf::None || g.node(i).is(kOutput)) return {begin, begin};
  return {begin, begin + g.member_words(i)};
}

// Nodes that merging may have given a number to: constants, rows that repeat, and what is made of these alone. It looks
// at nodes of the part only.
void KnownGraph::find_numbered(const Graph& g, const GraphLooks& looks) {
  const NodeId from = from_.nodes;
  numbered_.assign(g.size() - from, false);
  const NodeId* leaves = g.known_leaves().data() + from_.leaves;
  for (u32 k = 0; k < looks.first.size(); ++k) {
    if (looks.first[k] == k && g.signature(leaves[k]).leaf != Leaf::Input) continue;
    numbered_[leaves[k] - from] = numbered_[leaves[looks.first[k]] - from] = true;
  }
  auto numbered = [&](NodeId a) { return a >= from && numbered_[a - from]; };
  for (NodeId i = from; i < g.size(); ++i) {
    const Node& n = made_[i - from];
    if (n.is(kLeaf | kWeight)) continue;
    const Signature& s = g.sig(n.sig);
    bool all = true;
    for (u32 j = 0; j < s.nargs && !n.is(kOutput); ++j)
      all &= g.arg_shared(n.sig, j) || numbered(g.operands_[n.args + j]);
    numbered_[i - from] = n.is(kOutput) ? numbered(n.producer) : all;
  }
}

// Have the words of node i, which was made so, a part in what the passes did?
bool KnownGraph::must_stay(const Graph& g, NodeId i, const Node& made) const {
  const Signature& s = g.sig(made.sig);
  if (s.leaf != Leaf::None) return false;  // see `first`
  if (s.alias || g.node(i).is(kFused) || g.node(i).member != made.member) return true;
  return numbered_[i - from_.nodes] && !s.has_seed;
}

bool KnownGraph::take(const Graph& g, const GraphSize& from, const MadeNodes& made, const GraphLooks& looks) {
  DNL_INTERNAL(g.size() == made.nodes.size(), "known graph: a pass has added nodes");
  from_ = from;
  made_size_ = made.size;
  end_ = GraphSize::of(g);
  first_.copy(looks.first);
  copy_from(made_, made.nodes, from.nodes);
  copy_from(nodes_, g.nodes_, from.nodes);
  copy_from(operands_, g.operands_, from.operands);
  copy_from(words_, g.words_, from.words);
  copy_from(sigs_, g.sigs_, from.sigs);
  copy_from(keys_, g.keys_, from.keys);
  copy_from(key_len_, g.key_len_, from.sigs);
  copy_from(dims_, g.dims_, from.dims);
  params_.clear();
  for (u32 p = from.params; p < g.params_.size(); ++p) params_.push_back(g.params_[p].get());
  tables_.clear();
  for (u32 t = from.tables; t < g.tables_.size(); ++t) tables_.push_back(g.tables_[t].get());
  find_changed(g, made);
  find_numbered(g, looks);
  return find_fixed(g);
}

// Passes may have left fewer readers to nodes before the part, or name them in a signature.
void KnownGraph::find_changed(const Graph& g, const MadeNodes& made) {
  changed_.clear();
  for (NodeId i = 0; i < from_.nodes; ++i) {
    const Node& n = g.node(i);
    if (changed(n, made.nodes[i])) changed_.push_back({i, n.flags, n.readers, n.handles == Node::kMany});
  }
}

// False: a seed would have to stay.
bool KnownGraph::find_fixed(const Graph& g) {
  fixed_.clear();
  for (NodeId i = from_.nodes; i < g.size(); ++i) {
    const Node& m = made_[i - from_.nodes];
    if (!must_stay(g, i, m)) continue;
    if (g.sig(m.sig).has_seed) return false;
    // A node that has other words now had those of its own signature, which are behind those of the node before.
    const u32 end = i + 1 < g.size() ? std::max(m.member, made_[i + 1 - from_.nodes].member) : made_size_.words;
    const Range r = g.node(i).member == m.member && g.node(i).sig == m.sig ? words_of(g, i) : Range{m.member, end};
    if (r.begin == r.end) continue;
    if (r.begin < from_.words) return false;
    if (!fixed_.empty() && fixed_.back().end == r.begin)
      fixed_.back().end = r.end;
    else
      fixed_.push_back(r);
  }
  return true;
}

bool KnownGraph::like(const Graph& g, const GraphLooks& looks) const {
  if (GraphSize::of(g) != made_size_ || looks.first.size() != first_.size()) return false;
  const NodeId from = from_.nodes;
  for (NodeId i = from; i < g.size(); ++i) {
    const Node& made = made_[i - from];
    if (!same_record(g.node(i), made) || (g.node(i).handles != 0) != (made.handles != 0)) return false;
  }
  if (!alike(g.operands_, operands_, from_.operands, from_.operands, made_size_.operands) ||
      !alike(g.keys_, keys_, from_.keys, from_.keys, made_size_.keys) ||
      !alike(g.key_len_, key_len_, from_.sigs, from_.sigs, made_size_.sigs) ||
      !alike(looks.first, first_, 0, 0, first_.size()))
    return false;
  for (u32 d = from_.dims; d < made_size_.dims; ++d)
    if (!(g.dims_[d] == dims_[d - from_.dims])) return false;
  for (u32 p = 0; p < params_.size(); ++p)
    if (g.params_[from_.params + p].get() != params_[p]) return false;
  for (u32 t = 0; t < tables_.size(); ++t)
    if (g.tables_[from_.tables + t].get() != tables_[t]) return false;
  for (const Range& r : fixed_)
    if (!alike(g.words_, words_, from_.words, r.begin, r.end)) return false;
  return true;
}

void KnownGraph::put(Graph& g) const {
  // All that may fail comes first.
  g.operands_.reserve(end_.operands);
  g.words_.reserve(end_.words);
  g.keys_.reserve(end_.keys);
  g.key_len_.reserve(end_.sigs);
  g.dims_.reserve(end_.dims);
  g.sigs_.reserve(end_.sigs);
  while ((std::size_t{end_.sigs} + 1) * 2 > g.buckets_.size()) g.make_buckets(g.buckets_.size() * 2);
  auto put_node = [](Node& n, const Node& m) {
    n.sig = m.sig;
    n.args = m.args;
    n.member = m.member;
    n.producer = m.producer;
    n.root = m.root;
    n.offset = m.offset;
    n.depth = m.depth;
    n.dim = m.dim;
    n.flags = m.flags;
    n.readers = m.readers;
    if (m.handles == Node::kMany) n.handles = Node::kMany;  // a signature that a pass made names it, perhaps
    if (!m.is(kLeaf)) n.value = m.value;
  };
  Node* to = g.nodes_.data() + from_.nodes;
  for (const Node& m : nodes_) put_node(*to++, m);
  for (const Changed& c : changed_) {
    Node& n = g.nodes_[c.id];
    n.flags = c.flags;
    n.readers = c.readers;
    if (c.many) n.handles = Node::kMany;
  }
  copy_behind(g.operands_, operands_, from_.operands, made_size_.operands);
  copy_behind(g.words_, words_, from_.words, made_size_.words);
  copy_behind(g.keys_, keys_, from_.keys, made_size_.keys);
  copy_behind(g.key_len_, key_len_, from_.sigs, made_size_.sigs);
  copy_behind(g.dims_, dims_, from_.dims, made_size_.dims);
  copy_behind(g.sigs_, sigs_, from_.sigs, made_size_.sigs);
  for (u32 s = made_size_.sigs; s < g.signatures(); ++s) g.enter(s);
}

bool KnownGraph::same(const Graph& g) const {
  if (GraphSize::of(g) != end_) return false;
  constexpr u16 kRun = kOverwritten;  // what running has added
  auto with_run = [](Node n, u16 kept) {
    n.flags = static_cast<u16>(n.flags | (kept & kRun));
    return n;
  };
  for (u32 k = 0; k < nodes_.size(); ++k)
    if (!same_record(with_run(g.node(from_.nodes + k), nodes_[k].flags), nodes_[k])) return false;
  for (const Changed& c : changed_)
    if (with_run(g.node(c.id), c.flags).flags != c.flags || g.node(c.id).readers != c.readers) return false;
  for (u32 s = 0; s < sigs_.size(); ++s)
    if (g.sigs_[from_.sigs + s].family != sigs_[s].family || g.sigs_[from_.sigs + s].items != sigs_[s].items)
      return false;
  return alike(g.operands_, operands_, from_.operands, from_.operands, end_.operands) &&
         alike(g.keys_, keys_, from_.keys, from_.keys, end_.keys) &&
         alike(g.words_, words_, from_.words, made_size_.words, end_.words);
}

}  // namespace dnl
