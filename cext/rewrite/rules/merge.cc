// Merging: op nodes that would compute the same are computed once.
//
// Sentences begin alike, leaves of trees carry the same words, and what is made of the same things in the same way has
// the same value. Before new nodes are fused and planned, some get a value number (as compilers do): rows of tables and
// constants that are read again, and nodes of one signature and the same attributes whose arguments have the same
// numbers. A node whose number an earlier one has becomes an alias of that one. Nobody must be able to ask for either
// (no expression refers to them), for their gradients become one. Projections inside cells, over which the cells'
// outputs may lie, are merged only where most of them repeat. Random ops and other inputs have no number.
#include <algorithm>

#include "base/mix.h"
#include "rewrite/passes.h"

namespace dnl {
namespace {

// Will it become a part of its one reader, if it stays what it is?
bool fusible(const Signature& sig) {
  const OpDef& op = op_def(sig.op);
  return op.formula != Formula::None || op.joinable || op.concatenates;
}

class MergeAlike final : public Pass {
 public:
  void begin(const Rewriter& r, PassSet on) override;
  u32 run(Rewriter& r, const Lane& lane) override;
  void release() override { release_all(value_, worth_, again_, slots_, leaves_, projections_, inner_); }

 private:
  // Open addressing: who has a number, found by what it is made of.
  struct Slot {
    u32 hash, node;
  };

  NodeId value(NodeId i) const { return i < from_ ? kNoNode : value_[i - from_]; }
  void number_leaves(const Graph& g);
  void see(const Graph& g, NodeId i) {
    if (g.node(i).depth > deepest_ + 2 || g.node(i).is(kWeight)) return;
    if (!g.node(i).is(kInner)) return number(g, i);
    if (any_frequent_) see_projection(g, i);
  }
  void number(const Graph& g, NodeId i);
  void add(const Graph& g, NodeId i, u64 hash);
  bool same(const Graph& g, NodeId a, NodeId b) const;
  bool of_use(const Graph& g, NodeId i) const;
  void merge_into(Rewriter& r, NodeId i, NodeId first);
  bool reads_frequent(const Graph& g, NodeId i) const;
  void see_projection(const Graph& g, NodeId i);
  void choose_projections(Rewriter& r);
  void start();
  void empty();
  void grow();
  template <class Same>
  NodeId first_of(u64 hash, NodeId i, Same same);

  NodeId from_ = 0;
  bool nothing_ = false;  // no row of a table, no constant: no node gets a number
  u32 shallowest_ = 0;    // depth of any shared argument
  u32 deepest_ = 0;       // of these and of any node with a number
  Vec<NodeId> value_;     // by node, from from_ on: the first of its value, or kNoNode: it has no number
  Vec<u8> worth_;         // by node: one of its readers was merged, or it is a projection that is merged
  Vec<NodeId> again_;     // seen of the lane at hand, and not the first of their value
  // By signature: leaves, and projections of cells of the lane at hand, and how many of them an earlier one is like.
  struct Count {
    u32 all, again;
    bool mostly_again() const { return all >= kMany && 4 * again >= 3 * all; }
    static constexpr u32 kMany = 64;
  };
  Vec<Count> leaves_, projections_;
  bool any_frequent_ = false;  // are there leaves of a signature that are mostly read again?
  Vec<NodeId> inner_;          // then: projections of cells of the lane at hand
  Vec<Slot> slots_;            // nodes count from 1: 0 is empty
  u32 taken_ = 0, most_taken_ = 0;
};

void MergeAlike::begin(const Rewriter& r, PassSet) {
  const Graph& g = r.graph();
  if (slots_.size() / 16 > most_taken_) slots_.resize(slots_.size() / 2);  // was large once: smaller, step by step
  most_taken_ = 0;
  from_ = r.first();
  nothing_ = g.known_leaves().empty() || g.known_leaves()[g.known_leaves().size() - 1] < from_;
  if (nothing_) return;
  value_.assign(g.size() - from_, kNoNode);
  worth_.assign(value_.size(), false);
  number_leaves(g);
  shallowest_ = 0;  // weights that are computed add to the depth of all that reads them
  for (u32 s = 0; s < g.signatures(); ++s)
    for (u32 j = 0; g.sig(s).any_shared && j < g.sig(s).nargs; ++j)
      if (g.arg_shared(s, j)) shallowest_ = std::max(shallowest_, g.node(g.shared_arg(s, j)).depth);
}

void MergeAlike::start() {
  empty();
  again_.clear();
  inner_.clear();
  for (Count& n : projections_) n = {0, 0};
  deepest_ = shallowest_;
}

// The last first: what goes has no readers left but those that stay.
u32 MergeAlike::run(Rewriter& r, const Lane& lane) {
  const Graph& g = r.graph();
  if (nothing_) return 0;
  start();
  for (const NodeId* i = lane.begin; i != lane.end; ++i)
    if (g.is_op(*i)) see(g, *i);
  choose_projections(r);
  u32 merged = 0;
  for (std::size_t k = again_.size(); k-- > 0;) {
    if (!of_use(g, again_[k])) continue;
    merge_into(r, again_[k], value(again_[k]));
    ++merged;
  }
  return merged;
}

// Rows of tables that are read more than once, and constants. All else that has a number is made of these, or of
// nothing.
void MergeAlike::number_leaves(const Graph& g) {
  leaves_.assign(g.signatures(), Count{0, 0});
  any_frequent_ = false;
  empty();
  const Vec<NodeId>& leaves = g.known_leaves();
  for (const NodeId* at = std::lower_bound(leaves.begin(), leaves.end(), from_); at != leaves.end(); ++at) {
    const NodeId i = *at;
    if (g.node(i).handles) continue;
    const u32 s = g.node(i).sig, word = g.member(i)->u;
    const NodeId first =
        first_of(mix(s, word), i, [&](NodeId a) { return g.node(a).sig == s && g.member(a)->u == word; });
    ++leaves_[s].all;
    leaves_[s].again += first != i;
    if (first != i || g.signature(i).leaf == Leaf::Input) value_[first - from_] = value_[i - from_] = first;
  }
  for (const Count& n : leaves_) any_frequent_ |= n.mostly_again();
  projections_.assign(any_frequent_ ? g.signatures() : 0, Count{0, 0});
}

// Is all that it reads, but weights, rows of tables of which few are read, each many times?
bool MergeAlike::reads_frequent(const Graph& g, NodeId i) const {
  for (u32 j = 0; j < g.nargs(i); ++j) {
    if (g.arg_shared(g.node(i).sig, j)) continue;
    const NodeId a = g.operands(i)[j];
    if (a < from_ || !g.node(a).is(kLeaf) || !leaves_[g.node(a).sig].mostly_again()) return false;
  }
  return true;
}

// A cell's product with a row of a table. Of characters or actions few are read, each many times: then it pays that
// their rows are multiplied once, though the cell's outputs cannot lie over the results (Over::Arg0), which have many
// readers.
void MergeAlike::see_projection(const Graph& g, NodeId i) {
  Count& n = projections_[g.node(i).sig];
  ++n.all;
  inner_.push_back(i);
  if (!reads_frequent(g, i)) return;
  number(g, i);
  n.again += value(i) != kNoNode && value(i) != i;
}

// Where most of a signature are such and repeat. Cells of a signature have outputs over all of these or none: they are
// none now.
void MergeAlike::choose_projections(Rewriter& r) {
  for (NodeId i : inner_) {
    if (!projections_[r.graph().node(i).sig].mostly_again()) continue;
    r.separate(i);
    worth_[i - from_] = true;
  }
}

// Most nodes read something without a number, a state as a rule, which comes last, and get none. Inner nodes get theirs
// when their reader may get one.
void MergeAlike::number(const Graph& g, NodeId i) {
  const u32 s = g.node(i).sig, nargs = g.nargs(i);
  const NodeId* args = g.operands(i);
  bool inner = false;
  u64 hash = s;
  for (u32 j = nargs; j-- > 0;) {
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
void MergeAlike::add(const Graph& g, NodeId i, u64 hash) {
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

bool MergeAlike::same(const Graph& g, NodeId a, NodeId b) const {
  const u32 s = g.node(a).sig;
  if (s != g.node(b).sig) return false;
  for (u32 j = 0; j < g.sig(s).nargs; ++j)
    if (!g.arg_shared(s, j) && value(g.operands(a)[j]) != value(g.operands(b)[j])) return false;
  const u32 words = g.member_words(a);
  return words == g.member_words(b) && std::memcmp(g.member(a), g.member(b), words * sizeof(Word)) == 0;
}

// Nodes that would run inside the one node that reads them, which stays, would only be kept from it. Joined nodes go
// with all that read their parts: each part has one reader, which may write over it.
bool MergeAlike::of_use(const Graph& g, NodeId i) const {
  if (g.readers(i) == 0) return true;
  if (g.node(i).is(kInner) || op_def(g.signature(i).op).in_parts) return false;
  return g.readers(i) > 1 || worth_[i - from_] || !fusible(g.signature(i));
}

void MergeAlike::merge_into(Rewriter& r, NodeId i, NodeId first) {
  const Graph& g = r.graph();
  for (u32 j = 0; j < g.nargs(i); ++j)
    if (g.operands(i)[j] >= from_) worth_[g.operands(i)[j] - from_] = true;
  r.alias(i, first);
}

// ---- the table -----------------------------------------------------------------------------------------------------

void MergeAlike::empty() {
  constexpr std::size_t kFew = 1024;
  if (slots_.empty()) slots_.resize(kFew);
  std::memset(static_cast<void*>(slots_.data()), 0, slots_.size() * sizeof(Slot));
  taken_ = 0;
}

void MergeAlike::grow() {
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
NodeId MergeAlike::first_of(u64 hash, NodeId i, Same same) {
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

}  // namespace

std::unique_ptr<Pass> merge_alike() { return std::make_unique<MergeAlike>(); }

}  // namespace dnl
