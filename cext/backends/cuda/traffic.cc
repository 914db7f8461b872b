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

// ---- leaves --------------------------------------------------------------------------------------------------------

// Where it is, or would be.
std::size_t Traffic::slot_of(u64 number) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = static_cast<std::size_t>((number * 0x9e3779b97f4a7c15u) >> 32) & mask;
  while (slots_[i].number && slots_[i].number != number + 1) i = (i + 1) & mask;
  return i;
}
Traffic::Leaf& Traffic::leaf_of(u64 number) {
  if (2 * leaves_.size() >= slots_.size()) grow();
  Slot& s = slots_[slot_of(number)];
  if (!s.number) {
    s = {number + 1, static_cast<u32>(leaves_.size())};
    leaves_.push_back({});
  }
  return leaves_[s.leaf];
}
void Traffic::grow() {
  Vec<Slot> old;
  std::swap(old, slots_);
  slots_.assign(old.empty() ? kFirstSlots : 2 * old.size(), Slot{0, 0});
  for (const Slot& s : old)
    if (s.number) slots_[slot_of(s.number - 1)] = s;
}
void Traffic::clear() {
  if (leaves_.empty()) return;
  slots_.assign(slots_.size(), Slot{0, 0});
  leaves_.clear();
  pages_.clear();
  pieces_.clear();
}

// ---- asking --------------------------------------------------------------------------------------------------------

u32 Traffic::earliest(const Span& span, bool written, u32 found) const {
  if (leaves_.empty()) return found;
  each_block(span.begin, span.end, kLeafBits, [&](u64 number, u32 begin, u32 end) {
    const Slot& s = slots_[slot_of(number)];
    if (s.number) found = earliest_in(leaves_[s.leaf], begin, end, written, found);
  });
  return found;
}
u32 Traffic::earliest_in(const Leaf& leaf, u32 begin, u32 end, bool written, u32 found) const {
  const u32 most = leaf.levels.first(written);
  if (most <= found || !leaf.divided) return std::max(found, most);
  const Page* pages = pages_.begin() + leaf.at;
  each_block(begin, end, kPageBits,
             [&](u64 number, u32 from, u32 to) { found = earliest_in(pages[number], from, to, written, found); });
  return found;
}
u32 Traffic::earliest_in(const Page& page, u32 begin, u32 end, bool written, u32 found) const {
  const u32 most = page.levels.first(written);
  if (most <= found || page.count == 0) return std::max(found, most);
  const Piece* piece = pieces_.begin() + page.at;
  piece = std::upper_bound(piece, piece + page.count, begin, [](u32 at, const Piece& p) { return at < p.end; });
  for (;; ++piece) {
    found = std::max(found, piece->levels.first(written));
    if (piece->end >= end) return found;
  }
}

// ---- noting --------------------------------------------------------------------------------------------------------

void Traffic::note(const Span& span, bool written, u32 level) {
  each_block(span.begin, span.end, kLeafBits,
             [&](u64 number, u32 begin, u32 end) { note_in(leaf_of(number), begin, end, written, level + 1); });
}

void Traffic::note_in(Leaf& leaf, u32 begin, u32 end, bool written, u32 after) {
  const bool whole = end - begin == kLeaf;
  if (!whole && !leaf.divided) {
    leaf.divided = true;
    leaf.at = static_cast<u32>(pages_.size());
    std::fill_n(pages_.extend(kPages), kPages, Page{leaf.levels, 0, 0, 0});
  }
  if (whole && written) {
    leaf.divided = false;
    leaf.levels = {};
  }
  leaf.levels.note(written, after);
  if (!leaf.divided) return;
  Page* pages = pages_.begin() + leaf.at;
  each_block(begin, end, kPageBits,
             [&](u64 number, u32 from, u32 to) { note_in(pages[number], from, to, written, after); });
}

void Traffic::note_in(Page& page, u32 begin, u32 end, bool written, u32 after) {
  const bool whole = end - begin == kPage;
  if (!whole && page.count == 0) {
    if (page.room == 0) {
      page.at = static_cast<u32>(pieces_.size());
      page.room = kFirstPieces;
      pieces_.extend(kFirstPieces);
    }
    pieces_[page.at] = {kPage, page.levels};
    page.count = 1;
  }
  if (whole && written) {
    page.count = 0;
    page.levels = {};
  }
  page.levels.note(written, after);
  if (page.count == 0) return;
  const u32 first = begin == 0 ? 0 : cut(page, begin, 0), last = cut(page, end, first);
  Piece* all = pieces_.begin() + page.at;
  if (!written) {
    for (u32 i = first; i < last; ++i) all[i].levels.note(false, after);
    return;
  }
  all[first] = {end, {after, 0}};
  std::copy(all + last, all + page.count, all + first + 1);
  page.count = static_cast<u16>(page.count - (last - first - 1));
}

// The first piece that begins at `at`, which is made; none before `from` does.
u32 Traffic::cut(Page& page, u32 at, u32 from) {
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
