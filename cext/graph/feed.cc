#include "graph/feed.h"

namespace dnl {

void Feed::note(Graph& g, NodeId node, u32 at, u32 index, bool from_end) {
  if (fed_.empty() || fed_[fed_.size() - 1].node != node) {
    const Signature& sig = g.signature(node);
    const u32 begin = static_cast<u32>(places_.size());
    fed_.push_back({node, sig.leaf == Leaf::Lookup, from_end, g.node(node).sig, static_cast<u32>(dims_.size()),
                    sig.nargs, begin, begin});
    for (u32 j = 0; j < sig.nargs; ++j) dims_.push_back(g.node(g.operands(node)[j]).dim);
    g.keep(node);
  }
  places_.push_back({at, index});
  ++fed_[fed_.size() - 1].end;
}

void Feed::rewritten(Graph& g) {
  for (const Fed& fed : fed_)
    if (fed.row) g.unkeep(fed.node);
}

void Feed::give(Graph& g, const i32* ints) {
  for (const Fed& fed : fed_)
    if (fed.row)
      give_rows(g, fed, ints);
    else
      give_words(g, fed, ints);
}

void Feed::give_rows(Graph& g, const Fed& fed, const i32* ints) {
  const LookupTable& table = *g.table(g.signature(fed.node).table);
  Word* ids = g.words_of(fed.node);
  for (u32 k = fed.begin; k < fed.end; ++k) ids[places_[k].at].u = table.find_row(ints[places_[k].index], fed.from_end);
}

void Feed::give_words(Graph& g, const Fed& fed, const i32* ints) {
  Word* words = g.words_of(fed.node);
  before_.clear();
  for (u32 k = fed.begin; k < fed.end; ++k) {
    Word& w = words[places_[k].at];
    before_.push_back(w);
    w.i = ints[places_[k].index];
  }
  const OpDef& op = op_def(g.sig(fed.sig).op);
  if (!op.check && !op.alias_offset) return;
  shapes_.resize(fed.nargs);
  for (u32 j = 0; j < fed.nargs; ++j) shapes_[j] = &g.dim_by_id(dims_[fed.dims + j]);
  const ShapeIn in{op, static_cast<int>(fed.nargs), shapes_.data(), g.key(fed.sig),
                   static_cast<int>(g.sig(fed.sig).nkey)};
  try {
    if (op.check) op.check(in, words);
  } catch (...) {  // the graph may run again before it is fed again
    for (u32 k = fed.end; k-- > fed.begin;) words[places_[k].at] = before_[k - fed.begin];
    throw;
  }
  if (g.sig(fed.sig).alias && op.alias_offset) g.move_alias(fed.node, op.alias_offset(in, words));
}

}  // namespace dnl
