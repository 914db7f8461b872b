// What changes in nodes that stay when a graph is run again: rows of look-ups, attributes that differ from member to
// member, seeds.
#include <utility>

#include "base/rng.h"
#include "graph/graph.h"

namespace dnl {

void Graph::set_lookup_ids(NodeId i, const u32* ids, u32 n) {
  const Signature& s = signature(i);
  LookupTable& t = *tables_[s.table];
  if (n != dim(i).bd) fail_value("[lookup] set: as many row ids as before are needed");
  for (u32 k = 0; k < n; ++k) t.find_row(ids[k]);
  std::memcpy(words_.data() + nodes_[i].member, ids, n * sizeof(u32));
  find_rows(i);
}

void Graph::set_member_word(NodeId i, u32 at, Word w) {
  Word& word = words_[nodes_[i].member + at];
  const Word old = std::exchange(word, w);
  const Signature& s = signature(i);
  const OpDef& op = op_def(s.op);
  try {
    const std::size_t alias_at = check_attributes(op, s, nodes_[i].sig, operands(i), member(i));
    if (s.alias && op.alias_offset) move_alias(i, alias_at);
  } catch (...) {
    word = old;
    throw;
  }
}

// The aliases of this node move with it.
void Graph::move_alias(NodeId i, std::size_t to) {
  const Node& a = nodes_[operands(i)[0]];
  const u32 offset = static_cast<u32>(to) + (a.is(kAlias) ? a.offset : 0);
  const u32 moved = offset - nodes_[i].offset;
  if (!moved) return;
  Vec<u8> moves;
  moves.resize(size());
  for (NodeId j = i; j < size(); ++j) {
    Node& n = nodes_[j];
    moves[j] = j == i || (n.is(kAlias) && aliased(j) >= i && moves[aliased(j)]);
    if (!moves[j]) continue;
    n.offset += moved;
    if (float* base = nodes_[n.root].value) n.value = base + n.offset;
  }
}

void Graph::refresh() {
  for (std::size_t t = 0; t < tables_.size(); ++t) table_changes_[t] = tables_[t]->changes;
  if (!changes_) {
    for (NodeId i : known_leaves_)
      if (signature(i).leaf == Leaf::Lookup) find_rows(i);
    return;
  }
  for (NodeId i = 0; i < size(); ++i) {
    const Signature& s = signature(i);
    if (s.leaf == Leaf::Lookup) find_rows(i);
    if (s.leaf != Leaf::None || !s.has_seed || nodes_[i].is(kOutput)) continue;
    const u32 begin = nodes_[i].member;
    op_def(s.op).each_member(member(i), [&](const AttrSpec& a, u32 at) {
      if (a.kind == AttrKind::Seed) draw_seed(words_.data() + begin + at);
    });
  }
}

void Graph::draw_seed(Word* to) {
  const u64 seed = splitmix64(seed_state);
  to[0].u = static_cast<u32>(seed);
  to[1].u = static_cast<u32>(seed >> 32);
}

u32 Graph::count_member_words(NodeId i) const {
  return op_def(signature(i).op).each_member(member(i), [](const AttrSpec&, u32) {});
}

}  // namespace dnl
