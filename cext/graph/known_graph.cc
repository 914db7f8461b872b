#include "graph/known_graph.h"

#include <algorithm>

#include "base/mix.h"

namespace dnl {
namespace {

// `to` keeps its first n and gets what `from` has behind these.
template <class T>
void copy_behind(Vec<T>& to, const Vec<T>& from, u32 n) {
  to.resize(n);
  to.append(from.data() + n, from.size() - n);
}

template <class T>
bool ends_alike(const Vec<T>& a, const Vec<T>& b, std::size_t from) {
  return a.size() == b.size() &&
         (a.size() == from || std::memcmp(a.data() + from, b.data() + from, (a.size() - from) * sizeof(T)) == 0);
}

template <class T>
bool begins_alike(const Vec<T>& a, const Vec<T>& b, std::size_t n) {
  return n == 0 || std::memcmp(a.data(), b.data(), n * sizeof(T)) == 0;
}

// But for stamps, addresses and who refers to them.
bool same_record(const Node& a, const Node& b) {
  return a.sig == b.sig && a.args == b.args && a.member == b.member && a.producer == b.producer && a.root == b.root &&
         a.offset == b.offset && a.depth == b.depth && a.dim == b.dim && a.flags == b.flags && a.readers == b.readers;
}

}  // namespace

// ---- at first sight
// --------------------------------------------------------------------------------------------------

void GraphLooks::see(const Graph& g) {
  u64 h = g.size();
  for (NodeId i = 0; i < g.size(); ++i) {
    const Node& n = g.node(i);
    h = mix(h, n.sig | static_cast<u64>(n.flags) << 32 | static_cast<u64>(n.handles != 0) << 48);
    for (u32 j = 0; j < g.nargs(i); ++j) h = mix(h, g.operands(i)[j]);
  }
  const Vec<NodeId>& leaves = g.known_leaves();
  std::size_t room = 16;
  while (room < 2 * leaves.size()) room *= 2;
  first.resize(leaves.size());
  slots_.assign(room, 0);
  for (u32 k = 0; k < leaves.size(); ++k) {
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
  operands = static_cast<u32>(g.operands_.size());
  words = static_cast<u32>(g.words_.size());
  sigs = g.signatures();
  keys = static_cast<u32>(g.keys_.size());
  dims = static_cast<u32>(g.dims_.size());
}

// ---- one that is kept
// ------------------------------------------------------------------------------------------------

KnownGraph::Range KnownGraph::words_of(const Graph& g, NodeId i) {
  const Signature& s = g.signature(i);
  const u32 begin = g.node(i).member;
  if (s.leaf != Leaf::None || g.node(i).is(kOutput)) return {begin, begin};
  return {begin, begin + g.member_words(i)};
}

// Nodes that merging may have given a number to: constants, rows that repeat, and what is made of these alone.
void KnownGraph::find_numbered(const Graph& g, const GraphLooks& looks) {
  numbered_.assign(g.size(), false);
  const Vec<NodeId>& leaves = g.known_leaves();
  for (u32 k = 0; k < leaves.size(); ++k) {
    if (looks.first[k] == k && g.signature(leaves[k]).leaf != Leaf::Input) continue;
    numbered_[leaves[k]] = numbered_[leaves[looks.first[k]]] = true;
  }
  for (NodeId i = 0; i < g.size(); ++i) {
    const Node& n = made_[i];
    if (n.is(kLeaf | kWeight)) continue;
    const Signature& s = g.sig(n.sig);
    bool all = true;
    for (u32 j = 0; j < s.nargs && !n.is(kOutput); ++j)
      all &= g.arg_shared(n.sig, j) || numbered_[g.operands_[n.args + j]];
    numbered_[i] = n.is(kOutput) ? numbered_[n.producer] : all;
  }
}

// Have the words of node i, which was made so, a part in what the passes did?
bool KnownGraph::must_stay(const Graph& g, NodeId i, const Node& made) const {
  const Signature& s = g.sig(made.sig);
  if (s.leaf != Leaf::None) return false;  // see `first`
  if (s.alias || g.node(i).is(kFused) || g.node(i).member != made.member) return true;
  return numbered_[i] && !s.has_seed;
}

bool KnownGraph::take(const Graph& g, const MadeNodes& made, const GraphLooks& looks) {
  DNL_INTERNAL(g.size() == made.nodes.size(), "known graph: a pass has added nodes");
  first_.copy(looks.first);
  made_.copy(made.nodes);
  nodes_.copy(&g.node(0), g.size());
  operands_.copy(g.operands_);
  words_.copy(g.words_);
  sigs_.copy(g.sigs_);
  keys_.copy(g.keys_);
  key_len_.copy(g.key_len_);
  dims_.copy(g.dims_);
  n_operands_ = made.operands;
  n_words_ = made.words;
  n_sigs_ = made.sigs;
  n_keys_ = made.keys;
  n_dims_ = made.dims;
  params_.clear();
  for (const auto& p : g.params_) params_.push_back(p.get());
  tables_.clear();
  for (const auto& t : g.tables_) tables_.push_back(t.get());
  find_numbered(g, looks);
  fixed_.clear();
  for (NodeId i = 0; i < g.size(); ++i) {
    const Node& m = made_[i];
    if (!must_stay(g, i, m)) continue;
    if (g.sig(m.sig).has_seed) return false;
    // A node that has other words now had those of its own signature, which are behind those of the node before.
    const u32 end = i + 1 < g.size() ? std::max(m.member, made_[i + 1].member) : n_words_;
    const Range r = g.node(i).member == m.member && g.node(i).sig == m.sig ? words_of(g, i) : Range{m.member, end};
    if (r.begin == r.end) continue;
    if (!fixed_.empty() && fixed_.back().end == r.begin)
      fixed_.back().end = r.end;
    else
      fixed_.push_back(r);
  }
  return true;
}

bool KnownGraph::like(const Graph& g, const GraphLooks& looks) const {
  if (g.size() != made_.size() || g.operands_.size() != n_operands_ || g.words_.size() != n_words_ ||
      g.sigs_.size() != n_sigs_ || g.keys_.size() != n_keys_ || g.dims_.size() != n_dims_ ||
      g.params_.size() != params_.size() || g.tables_.size() != tables_.size() || looks.first.size() != first_.size())
    return false;
  for (NodeId i = 0; i < g.size(); ++i)
    if (!same_record(g.node(i), made_[i]) || (g.node(i).handles != 0) != (made_[i].handles != 0)) return false;
  if (!begins_alike(g.operands_, operands_, n_operands_) || !begins_alike(g.keys_, keys_, n_keys_) ||
      !begins_alike(g.key_len_, key_len_, n_sigs_) || !begins_alike(looks.first, first_, first_.size()))
    return false;
  for (u32 d = 0; d < n_dims_; ++d)
    if (!(g.dims_[d] == dims_[d])) return false;
  for (u32 p = 0; p < params_.size(); ++p)
    if (g.params_[p].get() != params_[p]) return false;
  for (u32 t = 0; t < tables_.size(); ++t)
    if (g.tables_[t].get() != tables_[t]) return false;
  for (const Range& r : fixed_)
    if (std::memcmp(g.words_.data() + r.begin, words_.data() + r.begin, (r.end - r.begin) * sizeof(Word)) != 0)
      return false;
  return true;
}

void KnownGraph::put(Graph& g) const {
  // All that may fail comes first.
  g.operands_.reserve(operands_.size());
  g.words_.reserve(words_.size());
  g.keys_.reserve(keys_.size());
  g.key_len_.reserve(key_len_.size());
  g.dims_.reserve(dims_.size());
  g.sigs_.reserve(sigs_.size());
  while ((sigs_.size() + 1) * 2 > g.buckets_.size()) g.make_buckets(g.buckets_.size() * 2);
  for (NodeId i = 0; i < g.size(); ++i) {
    Node& n = g.nodes_[i];
    const Node& m = nodes_[i];
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
  }
  copy_behind(g.operands_, operands_, n_operands_);
  copy_behind(g.words_, words_, n_words_);
  copy_behind(g.keys_, keys_, n_keys_);
  copy_behind(g.key_len_, key_len_, n_sigs_);
  copy_behind(g.dims_, dims_, n_dims_);
  copy_behind(g.sigs_, sigs_, n_sigs_);
  for (u32 s = n_sigs_; s < g.signatures(); ++s) g.enter(s);
}

bool KnownGraph::same(const Graph& g) const {
  if (g.size() != nodes_.size() || g.operands_.size() != operands_.size() || g.words_.size() != words_.size() ||
      g.keys_.size() != keys_.size() || g.sigs_.size() != sigs_.size() || g.dims_.size() != dims_.size())
    return false;
  constexpr u16 kRun = kOverwritten;  // what running has added
  for (NodeId i = 0; i < g.size(); ++i) {
    Node n = g.node(i);
    n.flags = static_cast<u16>(n.flags | (nodes_[i].flags & kRun));
    if (!same_record(n, nodes_[i])) return false;
  }
  for (u32 s = 0; s < sigs_.size(); ++s)
    if (g.sigs_[s].family != sigs_[s].family || g.sigs_[s].items != sigs_[s].items) return false;
  return ends_alike(g.operands_, operands_, 0) && ends_alike(g.keys_, keys_, 0) &&
         ends_alike(g.words_, words_, n_words_);
}

}  // namespace dnl
