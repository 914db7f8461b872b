#include "graph/body.h"

#include <algorithm>

namespace dnl {

// ---- recording -------------------------------------------------------------------------------------------------

void Body::finish(const Graph& g, u32 n_args) {
  n_args_ = n_args;
  ids_.resize(g.size());
  for (u32 k = 0; k < n_args; ++k) weights_.push_back(kNoNode);
  std::size_t next_outside = 0;
  for (NodeId i = n_args; i < g.size(); ++i) {
    ids_[i] = kNoNode;
    if (next_outside < outside_.size() && outside_[next_outside] == i) {
      ++next_outside;
    } else if (!g.node(i).is(kOutput)) {
      record(g, i);
    }
  }
  DNL_INTERNAL(next_outside == outside_.size() && next_lookup_ == lookups_.size() && next_noted_ == noted_.size(),
               "cell: a note names no node");
}

void Body::record(const Graph& g, NodeId i) {
  const Node& n = g.node(i);
  const bool gone = n.is(kFused | kDead);
  if (gone && !g.signature(i).has_seed) return skip_fills(g, i);
  Step s{};
  s.value = i;
  s.visible = 1;
  s.repeat = kNoNode;
  s.marks = n.flags & Graph::kMarks;
  s.kept = n.handles == Node::kMany;
  s.args = static_cast<u32>(operands_.size());
  s.words = static_cast<u32>(words_.size());
  s.fills = static_cast<u32>(fills_.size());
  if (gone)
    record_gone(g, i, s);
  else if (n.is(kLeaf))
    record_leaf(g, i, s);
  else
    record_op(g, i, s);
  record_fills(i, s);
  if (s.kind == Kind::Op || s.kind == Kind::Draw) record_seeds(s);
  s.nfills = static_cast<u32>(fills_.size()) - s.fills;
  steps_.push_back(s);
  if (s.kind != Kind::Op) return;
  room_.nodes += s.visible;
  room_.args += s.nargs;
  room_.words += s.nmember;
}

// Of a node that runs inside another one, or not at all, nothing is left but the seeds that it draws.
void Body::record_gone(const Graph& g, NodeId i, Step& s) {
  s.kind = Kind::Draw;
  s.op = g.signature(i).op;
  s.visible = 0;
  s.nmember = g.member_words(i);
  words_.append(g.member(i), s.nmember);
  skip_fills(g, i);
}

void Body::skip_fills(const Graph& g, NodeId i) {
  while (next_noted_ < noted_.size() && noted_[next_noted_].node == i) {
    DNL_INTERNAL(g.node(i).is(kDead), "cell: a number of the call in a node that runs inside another one");
    ++next_noted_;
  }
}

void Body::record_op(const Graph& g, NodeId i, Step& s) {
  const Signature& sig = g.signature(i);
  s.kind = Kind::Op;
  s.op = sig.op;
  s.visible = sig.alias ? u8(1) : sig.visible;
  s.nargs = sig.nargs;
  operands_.append(g.operands(i), s.nargs);
  DNL_INTERNAL(known_before(g, i), "cell: an argument that is made later");
  s.nkey = sig.nkey;
  s.nmember = g.member_words(i);
  words_.append(g.key(g.node(i).sig), s.nkey);
  words_.append(g.member(i), s.nmember);
}

// Weights stand in the graph before the first call.
bool Body::known_before(const Graph& g, NodeId i) const {
  const NodeId* args = g.operands(i);
  return std::all_of(args, args + g.nargs(i), [&](NodeId a) {
    return a < i || std::find(outside_.begin(), outside_.end(), a) != outside_.end();
  });
}

void Body::record_leaf(const Graph& g, NodeId i, Step& s) {
  const Signature& sig = g.signature(i);
  if (sig.leaf == Leaf::Lookup) {
    DNL_INTERNAL(next_lookup_ < lookups_.size() && lookups_[next_lookup_].node == i, "cell: a look-up without a note");
    s.kind = Kind::Lookup;
    s.batched = lookups_[next_lookup_].batched;
    s.update = lookups_[next_lookup_++].update;
    copies_rows_ |= s.batched;
    // Its table: the node from outside that has this number among the graph's tables.
    NodeId table = kNoNode;
    for (NodeId o : outside_)
      if (o < i && g.signature(o).leaf == Leaf::Table && g.signature(o).table == sig.table) table = o;
    DNL_INTERNAL(table != kNoNode, "cell: a look-up without a table");
    operands_.push_back(table);
    s.nargs = 1;
    s.nmember = g.dim(i).bd;
    words_.append(g.member(i), s.nmember);
    return;
  }
  DNL_INTERNAL(sig.leaf == Leaf::Input, "cell: a weight without a note");
  s.kind = g.node(i).is(kCounted) ? Kind::Constant : Kind::Input;
  s.dim = static_cast<u32>(dims_.size());
  dims_.push_back(g.dim(i));
  const float* numbers = g.input_data(i);
  s.nmember = s.kind == Kind::Constant ? 1 : static_cast<u32>(g.dim(i).size());
  for (u32 k = 0; k < s.nmember; ++k) {
    Word w;
    w.f = numbers[k];
    words_.push_back(w);
  }
}

void Body::record_fills(NodeId i, Step& s) {
  for (; next_noted_ < noted_.size() && noted_[next_noted_].node == i; ++next_noted_) {
    const Noted& note = noted_[next_noted_];
    DNL_INTERNAL(note.at < s.nmember, "cell: a word that the op does not have");
    fills_.push_back({s.words + s.nkey + note.at, note.index});
    s.filled = true;
  }
}

void Body::record_seeds(Step& s) {
  const u32 begin = s.words + s.nkey;
  op_def(s.op).each_member(words_.data() + begin, [&](const AttrSpec& a, u32 at) {
    if (a.kind == AttrKind::Seed) fills_.push_back({begin + at, kSeed});
  });
}

bool Body::alike(const Body& o, bool fills) const {
  if (n_args_ != o.n_args_ || steps_.size() != o.steps_.size() || operands_.size() != o.operands_.size() ||
      words_.size() != o.words_.size() || outside_.size() != o.outside_.size() ||
      (fills && fills_.size() != o.fills_.size()))
    return false;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const Step &a = steps_[k], &b = o.steps_[k];
    if (a.kind != b.kind || a.op != b.op || a.value != b.value || a.nargs != b.nargs || a.nkey != b.nkey ||
        a.nmember != b.nmember || a.batched != b.batched || a.update != b.update || a.marks != b.marks ||
        (fills && a.nfills != b.nfills))
      return false;
    if (a.kind == Kind::Constant || a.kind == Kind::Input)
      if (!(dims_[a.dim] == o.dims_[b.dim])) return false;
  }
  Vec<u8> differs;  // words that calls fill in may differ
  differs.resize(words_.size());
  for (std::size_t k = 0; k < words_.size(); ++k) differs[k] = words_[k].u != o.words_[k].u;
  for (std::size_t k = 0; k < fills_.size(); ++k) {
    if (fills && (fills_[k].at != o.fills_[k].at || fills_[k].index != o.fills_[k].index)) return false;
    differs[fills_[k].at] = 0;
    if (fills_[k].index == kSeed) differs[fills_[k].at + 1] = 0;
  }
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (operands_[k] != o.operands_[k]) return false;
  for (std::size_t k = 0; k < outside_.size(); ++k)
    if (outside_[k] != o.outside_[k]) return false;
  for (u8 d : differs)
    if (d) return false;
  return true;
}

// ---- use -------------------------------------------------------------------------------------------------------

void Body::enter(const Graph& g, const NodeId* outside) {
  ++epoch_;
  for (std::size_t k = 0; k < outside_.size(); ++k) {
    DNL_INTERNAL(outside[k] < g.size(), "cell: a weight that is not in the graph");
    ids_[outside_[k]] = outside[k];
  }
}

void Body::add_to(Graph& g, u32 calls, const NodeId* args, const i32* ints, u32 n_ints, const u32* results,
                  u32 n_results, NodeId* made) {
  RepeatAdder to(g);
  const u32 room = std::min(calls, kRoom);
  for (u32 call = 0; call < calls; ++call, args += n_args_, ints += n_ints, made += n_results) {
    if (call % kRoom == 0) {
      if (call) to.end();
      make_room(to, room);
    }
    take(g, args);
    add_call(g, to, room, ints);
    for (u32 k = 0; k < n_results; ++k) made[k] = ids_[results[k]];
  }
  if (calls) to.end();
}

void Body::add_call(Graph& g, RepeatAdder& to, u32 room, const i32* ints) {
  NodeId* const ids = ids_.data();
  for (Step& s : steps_) {
    if (s.nfills) fill_in(g, s, ints);
    if (s.kind == Kind::Draw) continue;
    NodeId i;
    if (s.epoch == epoch_ && s.repeats && (s.unchecked || (s.right & right_bit(s)) != 0)) {
      Repeated& r = repeats_[s.repeat];
      i = to.add(
          r.node, r.node.n_moving, [&r, ids](u32 m) { return ids[r.value[m]]; }, words_.data() + s.words + s.nkey,
          s.nmember);
    } else {
      to.end();
      i = s.kind == Kind::Op ? add_op(g, s) : add_leaf(g, s);
      make_room(to, room);
    }
    for (u32 o = 0; o < s.visible; ++o) ids[s.value + o] = i + o;
    if (s.marks) to.node(i).flags |= s.marks;
    if (s.kept) to.node(i).handles = Node::kMany;
  }
}

// Signatures that were found before may name arguments that are weights.
void Body::take(const Graph& g, const NodeId* args) {
  bool as_before = true;
  for (u32 k = 0; k < n_args_; ++k) {
    ids_[k] = args[k];
    const NodeId weight = g.node(args[k]).is(kWeight) ? args[k] : kNoNode;
    as_before &= weight == weights_[k];
    weights_[k] = weight;
  }
  if (!as_before) ++epoch_;
}

void Body::fill_in(Graph& g, const Step& s, const i32* ints) {
  for (u32 k = s.fills; k < s.fills + s.nfills; ++k) {
    Word* w = words_.data() + fills_[k].at;
    if (fills_[k].index == kSeed)
      g.draw_seed(w);
    else
      w->i = ints[fills_[k].index];
  }
}

// Is this value the same node at the next call? Weights are.
bool Body::lasts(u32 v) const {
  return v < n_args_ ? weights_[v] != kNoNode : std::find(outside_.begin(), outside_.end(), v) != outside_.end();
}

// May the step's signature, that of node i, be taken at the next call? Not if it names a node of this call alone.
bool Body::settled(const Graph& g, NodeId i, const Step& s) const {
  const u32 sig = g.node(i).sig;
  for (u32 j = 0; j < s.nargs; ++j)
    if (g.arg_shared(sig, j) && !lasts(operands_[s.args + j])) return false;
  return true;
}

// The bit of Step::right for this call, 0 if it has none: an op's check looks at nothing else that differs between
// calls.
u64 Body::right_bit(const Step& s) const {
  if (s.nfills != 1 || fills_[s.fills].index == kSeed) return 0;
  const u32 n = words_[fills_[s.fills].at].u;
  return n < 64 ? u64(1) << n : 0;
}

// Node i is the first of a step in this epoch, and its signature may be taken again.
void Body::note(const Graph& g, NodeId i, Step& s) {
  s.sig = g.node(i).sig;
  s.epoch = epoch_;
  s.right = right_bit(s);
  const bool alias = g.sig(s.sig).alias;
  s.unchecked = !alias && (!s.filled || !op_def(s.op).check);
  const u32* const from = operands_.data() + s.args;
  Repeated r;
  s.repeats = !alias && r.node.begin(g, i, [=](u32 j) { return !lasts(from[j]); });
  if (!s.repeats) return;
  for (u32 m = 0; m < r.node.n_moving; ++m) r.value[m] = from[r.node.place[m]];
  if (s.repeat == kNoNode) {
    s.repeat = static_cast<u32>(repeats_.size());
    repeats_.extend(1);
  }
  repeats_[s.repeat] = r;
}

NodeId Body::add_op(Graph& g, Step& s) {
  const u32* const from = operands_.data() + s.args;
  const Word* const key = words_.data() + s.words;
  const Word* const member = key + s.nkey;
  if (args_.size() < s.nargs) args_.resize(s.nargs);
  NodeId* const args = args_.data();
  for (u32 j = 0; j < s.nargs; ++j) args[j] = ids_[from[j]];
  const int nmember = static_cast<int>(s.nmember);
  if (s.epoch == epoch_) {
    const NodeId i = g.add_known(s.sig, args, member, nmember);
    s.right |= right_bit(s);
    return i;
  }
  const NodeId i = g.add(s.op, args, static_cast<int>(s.nargs), key, static_cast<int>(s.nkey), member, nmember);
  if (settled(g, i, s)) note(g, i, s);
  return i;
}

NodeId Body::add_leaf(Graph& g, const Step& s) {
  Word* const words = words_.data() + s.words;
  if (s.kind == Kind::Lookup) {
    const NodeId table = ids_[operands_[s.args]];
    const LookupTable& t = *g.table(g.signature(table).table);
    for (u32 k = 0; s.filled && k < s.nmember; ++k)
      if (words[k].i < 0) words[k].u = t.find_row(words[k].i, !s.batched);  // from the end, as in Python
    return g.add_lookup(table, &words->u, s.nmember, s.batched, s.update);
  }
  const Dim& d = dims_[s.dim];
  if (s.kind == Kind::Constant) return g.add_constant(d, words->f);
  const NodeId i = g.add_input(d);
  std::memcpy(g.input_data(i), words, s.nmember * sizeof(float));
  return i;
}

}  // namespace dnl
