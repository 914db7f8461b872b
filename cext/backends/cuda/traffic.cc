#include "backends/cuda/traffic.h"

#include <algorithm>

namespace dnl::cuda {
namespace {

constexpr std::size_t kFirstSlots = 256;
constexpr u16 kFirstPieces = 4;

// The parts of a span within blocks of so many bytes, a power of two: f(number of the block, begin and end in it).
template <class F>
void each_block(u64 begin, u64 end, u32 bits, F f) {
  const u64 size = u64(1) << bits;
  while (begin < end) {
    const u64 number = begin >> bits, start = number << bits, stop = std::min(end, start + size);
    f(number, static_cast<u32>(begin - start), static_cast<u32>(stop - start));
    begin = stop;
  }
}

}  // namespace

// ---- the table -----------------------------------------------------------------------------------------------------

// Where it is, or would be.
std::size_t Traffic::slot_of(u64 number) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = static_cast<std::size_t>((number * 0x9e3779b97f4a7c15u) >> 32) & mask;
  while (slots_[i].number && slots_[i].number != number + 1) i = (i + 1) & mask;
  return i;
}
u32 Traffic::node_of(u64 number) {
  if (2 * used_ >= slots_.size()) grow();
  Slot& s = slots_[slot_of(number)];
  if (!s.number) {
    s = {number + 1, static_cast<u32>(nodes_.size())};
    nodes_.push_back({});
    ++used_;
  }
  return s.node;
}
void Traffic::grow() {
  Vec<Slot> old;
  std::swap(old, slots_);
  slots_.assign(old.empty() ? kFirstSlots : 2 * old.size(), Slot{0, 0});
  for (const Slot& s : old)
    if (s.number) slots_[slot_of(s.number - 1)] = s;
}
void Traffic::clear() {
  if (used_ == 0) return;
  slots_.assign(slots_.size(), Slot{0, 0});
  used_ = 0;
  nodes_.clear();
  pieces_.clear();
}

// ---- asking --------------------------------------------------------------------------------------------------------

u32 Traffic::earliest(const Span& span, bool written, u32 found) const {
  if (used_ == 0) return found;
  each_block(span.begin, span.end, kTop, [&](u64 number, u32 begin, u32 end) {
    const Slot& s = slots_[slot_of(number)];
    if (s.number) found = earliest_in<kTop>(nodes_[s.node], begin, end, written, found);
  });
  return found;
}

template <u32 bits>
u32 Traffic::earliest_in(const Node& node, u32 begin, u32 end, bool written, u32 found) const {
  const u32 most = node.levels.first(written);
  if (most <= found || node.count == 0) return std::max(found, most);
  if constexpr (bits > kPage) {
    each_block(begin, end, bits - kStep, [&](u64 part, u32 from, u32 to) {
      found = earliest_in<bits - kStep>(nodes_[node.at + part], from, to, written, found);
    });
    return found;
  } else {
    const Piece* piece = pieces_.begin() + node.at;
    piece = std::upper_bound(piece, piece + node.count, begin, [](u32 at, const Piece& p) { return at < p.end; });
    for (;; ++piece) {
      found = std::max(found, piece->levels.first(written));
      if (piece->end >= end) return found;
    }
  }
}

// ---- noting --------------------------------------------------------------------------------------------------------

void Traffic::note(const Span& span, bool written, u32 level) {
  each_block(span.begin, span.end, kTop,
             [&](u64 number, u32 begin, u32 end) { note_in<kTop>(node_of(number), begin, end, written, level + 1); });
}

template <u32 bits>
void Traffic::divide(u32 at) {
  Node* node = &nodes_[at];
  if constexpr (bits > kPage) {
    if (node->room == 0) {
      const u32 parts = static_cast<u32>(nodes_.size());
      nodes_.extend(kParts);
      node = &nodes_[at];
      node->at = parts;
      std::fill_n(nodes_.begin() + parts, kParts, Node{});
    }
    for (u32 i = 0; i < kParts; ++i) {
      Node& part = nodes_[node->at + i];
      part.levels = node->levels;
      part.count = 0;
    }
    node->count = node->room = kParts;
  } else {
    if (node->room == 0) {
      node->at = static_cast<u32>(pieces_.size());
      node->room = kFirstPieces;
      pieces_.extend(kFirstPieces);
    }
    pieces_[node->at] = {1u << kPage, node->levels};
    node->count = 1;
  }
}

template <u32 bits>
void Traffic::note_in(u32 at, u32 begin, u32 end, bool written, u32 after) {
  const bool whole = end - begin == 1u << bits;
  if (!whole && nodes_[at].count == 0) divide<bits>(at);
  Node& node = nodes_[at];
  if (whole && written) {
    node.count = 0;
    node.levels = {};
  }
  node.levels.note(written, after);
  if (node.count == 0) return;
  if constexpr (bits > kPage) {
    const u32 parts = node.at;  // which stay there; the node may not
    each_block(begin, end, bits - kStep, [&](u64 part, u32 from, u32 to) {
      note_in<bits - kStep>(parts + static_cast<u32>(part), from, to, written, after);
    });
  } else {
    note_pieces(node, begin, end, written, after);
  }
}

void Traffic::note_pieces(Node& page, u32 begin, u32 end, bool written, u32 after) {
  const u32 first = begin == 0 ? 0 : cut(page, begin, 0), last = cut(page, end, first);
  Piece* all = pieces_.begin() + page.at;
  if (!written) {
    for (u32 i = first; i < last; ++i) all[i].levels.note(false, after);
    return;
  }
  all[first] = {end, {after, 0}};
  if (last - first == 1) return;
  std::copy(all + last, all + page.count, all + first + 1);
  page.count = static_cast<u16>(page.count - (last - first - 1));
}

// The first piece that begins at `at`, which is made; none before `from` does.
u32 Traffic::cut(Node& page, u32 at, u32 from) {
  Piece* all = pieces_.begin() + page.at;
  Piece* found =
      std::lower_bound(all + from, all + page.count, at, [](const Piece& p, u32 end) { return p.end < end; });
  const u32 i = static_cast<u32>(found - all);
  if (found->end == at) return i + 1;
  if (page.count == page.room) {
    const u32 to = static_cast<u32>(pieces_.size());
    pieces_.extend(2 * std::size_t(page.room));
    all = pieces_.begin() + to;
    std::copy_n(pieces_.begin() + page.at, page.count, all);
    page.at = to;
    page.room = static_cast<u16>(2 * page.room);
  }
  std::copy_backward(all + i, all + page.count, all + page.count + 1);
  all[i].end = at;
  ++page.count;
  return i + 1;
}

}  // namespace dnl::cuda
