// What changes in nodes that stay when a graph is run again: rows of look-ups, attributes that differ from member to
// member, seeds.
#include "base/rng.h"
#include "graph/graph.h"

namespace dnl {

void Graph::set_lookup_ids(NodeId i, const u32* ids, u32 n) {
  const Signature& s = signature(i);
  LookupTable& t = *tables_[s.table];
  if (n != dim(i).bd) fail_value("[lookup] set: as many row ids as before are needed");
  for (u32 k = 0; k < n; ++k)
    if (ids[k] >= t.rows)
      fail_index("[lookup] row " + std::to_string(ids[k]) + " of a table with " + std::to_string(t.rows) + " rows");
  std::memcpy(words_.data() + nodes_[i].member, ids, n * sizeof(u32));
  find_rows(i);
}

void Graph::set_member_word(NodeId i, u32 at, Word w) {
  const u32 old = words_[nodes_[i].member + at].u;
  words_[nodes_[i].member + at] = w;
  const Signature& s = signature(i);
  const OpDef& op = op_def(s.op);
  if (!op.check) return;
  Vec<const Dim*> dims;
  for (u32 j = 0; j < s.nargs; ++j) dims.push_back(&dim(operands(i)[j]));
  const ShapeIn in{op, static_cast<int>(s.nargs), dims.data(), key(nodes_[i].sig), static_cast<int>(s.nkey)};
  try {
    op.check(in, member(i));
  } catch (...) {
    words_[nodes_[i].member + at].u = old;
    throw;
  }
  if (nodes_[i].is(kAlias) && op.alias_offset) move_alias(i, op.alias_offset(in, member(i)));
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
  if (!changes_) {
    for (NodeId i : known_leaves_)
      if (signature(i).leaf == Leaf::Lookup) find_rows(i);
    return;
  }
  for (NodeId i = 0; i < size(); ++i) {
    const Signature& s = signature(i);
    if (s.leaf == Leaf::Lookup) find_rows(i);
    if (s.leaf != Leaf::None || !s.has_seed || nodes_[i].is(kOutput)) continue;
    // Seed words stand where the member attributes before them end; members before a seed have one word each.
    u32 at = nodes_[i].member;
    for (const AttrSpec& a : op_def(s.op).attrs) {
      if (!a.member) continue;
      if (a.kind == AttrKind::Seed) {
        const u64 seed = splitmix64(seed_state);
        words_[at].u = static_cast<u32>(seed);
        words_[at + 1].u = static_cast<u32>(seed >> 32);
        at += 2;
      } else {
        at += a.kind == AttrKind::Int || a.kind == AttrKind::Float ? 1 : 1 + words_[at].u;
      }
    }
  }
}

u32 Graph::count_member_words(NodeId i) const {
  const OpDef& op = op_def(signature(i).op);
  const Word* w = member(i);
  u32 n = 0;
  for (const AttrSpec& a : op.attrs) {
    if (!a.member) continue;
    if (a.kind == AttrKind::Seed)
      n += 2;
    else
      n += a.kind == AttrKind::Int || a.kind == AttrKind::Float ? 1 : 1 + w[n].u;
  }
  return n;
}

}  // namespace dnl
