#include "rewrite/rules/merge.h"

#include <algorithm>

namespace dnl {
namespace {

u64 mix(u64 h, u64 w) { return (h ^ w) * 0x9E3779B97F4A7C15ull ^ (h >> 31); }

// Will it become a part of its one reader, if it stays what it is?
bool fusible(const Signature& sig) {
  const OpDef& op = op_def(sig.op);
  return op.formula != Formula::None || op.joinable || op.concatenates;
}

}  // namespace

void Merger::begin(const Graph& g, NodeId from) {
  if (slots_.size() / 16 > most_taken_) slots_.resize(slots_.size() / 2);  // was large once: smaller, step by step
  most_taken_ = 0;
  from_ = from;
  value_.assign(g.size() - from, kNoNode);
  worth_.assign(value_.size(), false);
  number_leaves(g);
  shallowest_ = 0;  // weights that are computed add to the depth of all that reads them
  for (u32 s = 0; s < g.signatures(); ++s)
    for (u32 j = 0; g.sig(s).any_shared && j < g.sig(s).nargs; ++j)
      if (g.arg_shared(s, j)) shallowest_ = std::max(shallowest_, g.node(g.shared_arg(s, j)).depth);
  start();
}

void Merger::start() {
  empty();
  again_.clear();
  inner_.clear();
  for (Count& n : projections_) n = {0, 0};
  deepest_ = shallowest_;
}

// The last first: what goes has no readers left but those that stay.
u32 Merger::merge(Graph& g) {
  u32 merged = 0;
  choose_projections(g);
  for (std::size_t k = again_.size(); k-- > 0;) {
    if (!of_use(g, again_[k])) continue;
    merge_into(g, again_[k], value(again_[k]));
    ++merged;
  }
  start();
  return merged;
}

// Rows of tables that are read more than once, and constants. All else that has a number is made of these, or of nothing.
void Merger::number_leaves(const Graph& g) {
  leaves_.assign(g.signatures(), Count{0, 0});
  any_frequent_ = false;
  empty();
  const Vec<NodeId>& leaves = g.known_leaves();
  for (const NodeId* at = std::lower_bound(leaves.begin(), leaves.end(), from_); at != leaves.end(); ++at) {
    const NodeId i = *at;
    if (g.node(i).handles) continue;
    const u32 s = g.node(i).sig, word = g.member(i)->u;
    const NodeId first = first_of(mix(s, word), i, [&](NodeId a) { return g.node(a).sig == s && g.member(a)->u == word; });
    ++leaves_[s].all;
    leaves_[s].again += first != i;
    if (first != i || g.signature(i).leaf == Leaf::Input) value_[first - from_] = value_[i - from_] = first;
  }
  for (const Count& n : leaves_) any_frequent_ |= n.mostly_again();
  projections_.assign(any_frequent_ ? g.signatures() : 0, Count{0, 0});
}

// Is all that it reads, but weights, rows of tables of which few are read, each many times?
bool Merger::reads_frequent(const Graph& g, NodeId i) const {
  for (u32 j = 0; j < g.nargs(i); ++j) {
    if (g.arg_shared(g.node(i).sig, j)) continue;
    const NodeId a = g.operands(i)[j];
    if (a < from_ || !g.node(a).is(kLeaf) || !leaves_[g.node(a).sig].mostly_again()) return false;
  }
  return true;
}

// A cell's product with a row of a table. Of characters or actions few are read, each many times: then it pays that their rows are
// multiplied once, though the cell's outputs cannot lie over the results (Over::Arg0), which have many readers.
void Merger::see_projection(const Graph& g, NodeId i) {
  Count& n = projections_[g.node(i).sig];
  ++n.all;
  inner_.push_back(i);
  if (!reads_frequent(g, i)) return;
  number(g, i);
  n.again += value(i) != kNoNode && value(i) != i;
}

// Where most of a signature are such and repeat. Cells of a signature have outputs over all of these or none: they are none now.
void Merger::choose_projections(Graph& g) {
  for (NodeId i : inner_) {
    if (!projections_[g.node(i).sig].mostly_again()) continue;
    g.unmark_inner(i);
    worth_[i - from_] = true;
  }
}

// Most nodes read something without a number and get none. Inner nodes get theirs when their reader may get one.
void Merger::number(const Graph& g, NodeId i) {
  const u32 s = g.node(i).sig, nargs = g.nargs(i);
  const NodeId* args = g.operands(i);
  bool inner = false;
  u64 hash = s;
  for (u32 j = 0; j < nargs; ++j) {
    if (g.arg_shared(s, j)) continue;
    const NodeId v = value(args[j]);
    if (v != kNoNode) {
      hash = mix(hash, v);
      continue;
    }
    if (args[j] + 1 != i || !g.node(args[j]).is(kInner)) return;
    inner = true;
  }
  if (inner) {
    number(g, i - 1);
    if (value(i - 1) == kNoNode) return;
    hash = mix(hash, value(i - 1));
  }
  add(g, i, hash);
}

// Gives a number to a node whose arguments have some, of which `hash` is made, unless it must stay what it is.
void Merger::add(const Graph& g, NodeId i, u64 hash) {
  const Signature& sig = g.signature(i);
  if (sig.has_seed) return;
  for (u32 o = 0; o < sig.visible; ++o)
    if (g.node(i + o).handles) return;
  for (u32 k = 0, words = g.member_words(i); k < words; ++k) hash = mix(hash, g.member(i)[k].u);
  const NodeId first = first_of(hash, i, [&](NodeId a) { return same(g, a, i); });
  for (u32 o = 0; o < sig.visible; ++o) value_[i + o - from_] = first + o;
  deepest_ = std::max(deepest_, g.node(i).depth);
  if (first != i) again_.push_back(i);
}

bool Merger::same(const Graph& g, NodeId a, NodeId b) const {
  const u32 s = g.node(a).sig;
  if (s != g.node(b).sig) return false;
  for (u32 j = 0; j < g.sig(s).nargs; ++j)
    if (!g.arg_shared(s, j) && value(g.operands(a)[j]) != value(g.operands(b)[j])) return false;
  const u32 words = g.member_words(a);
  return words == g.member_words(b) && std::memcmp(g.member(a), g.member(b), words * sizeof(Word)) == 0;
}

// Nodes that would run inside the one node that reads them, which stays, would only be kept from it.
bool Merger::of_use(const Graph& g, NodeId i) const {
  if (g.readers(i) == 0) return true;
  if (g.node(i).is(kInner)) return false;
  return g.readers(i) > 1 || worth_[i - from_] || !fusible(g.signature(i));
}

void Merger::merge_into(Graph& g, NodeId i, NodeId first) {
  const Signature& sig = g.signature(i);
  for (u32 j = 0; j < sig.nargs; ++j) {
    const NodeId a = g.operands(i)[j];
    g.reads_no_more(a);
    if (a >= from_) worth_[a - from_] = true;
  }
  for (u32 o = 0; o < sig.visible; ++o) g.merge(i + o, first + o);
}

// ---- the table -----------------------------------------------------------------------------------------------------

void Merger::empty() {
  constexpr std::size_t kFew = 1024;
  if (slots_.empty()) slots_.resize(kFew);
  std::memset(static_cast<void*>(slots_.data()), 0, slots_.size() * sizeof(Slot));
  taken_ = 0;
}

void Merger::grow() {
  const std::size_t n = 2 * slots_.size(), mask = n - 1;
  const Vec<Slot> before = std::move(slots_);
  slots_.assign(n, Slot{0, 0});
  for (const Slot& s : before) {
    if (!s.node) continue;
    std::size_t b = s.hash & mask;
    while (slots_[b].node) b = (b + 1) & mask;
    slots_[b] = s;
  }
}

// The first node that is the same, if there is one, else i.
template <class Same>
NodeId Merger::first_of(u64 hash, NodeId i, Same same) {
  if (2 * (taken_ + 1) > slots_.size()) grow();
  const u32 h = static_cast<u32>(hash >> 32);
  const std::size_t mask = slots_.size() - 1;
  std::size_t b = h & mask;
  for (; slots_[b].node; b = (b + 1) & mask)
    if (slots_[b].hash == h && same(slots_[b].node - 1)) return slots_[b].node - 1;
  slots_[b] = {h, i + 1};
  most_taken_ = std::max(most_taken_, ++taken_);
  return i;
}

}  // namespace dnl
