// Which levels of waves have read and written which memory last: by this the recorder knows what waits for what.
//
// Exact to the byte. Memory is seen in leaves, which are found by their number. One whose bytes do not all have the
// same levels is divided into pages, and such a page into pieces. A record of 64 scattered rows asks and notes some
// hundred spans, small ones as a rule, that begin and end where earlier ones did; a weight is a few whole leaves. So
// both cost a few steps. Who may include: backends/cuda. Includes: base/.
#pragma once
#include "base/vec.h"

namespace dnl::cuda {

// Bytes from `begin` to before `end`.
struct Span {
  u64 begin = ~u64(0), end = 0;

  bool meets(const Span& o) const { return begin < o.end && o.begin < end; }
  void join(const Span& o) {
    if (o.begin < begin) begin = o.begin;
    if (o.end > end) end = o.end;
  }
};

class Traffic {
 public:
  // The first level, from `found` on, that may read, or write, it now.
  u32 earliest(const Span& span, bool written, u32 found = 0) const;
  void note(const Span& span, bool written, u32 level);
  // Nothing has been read or written. Keeps its memory.
  void clear();

 private:
  static constexpr u32 kPageBits = 10, kLeafBits = 18;  // of the numbers of their bytes
  static constexpr u32 kPage = 1u << kPageBits, kLeaf = 1u << kLeafBits, kPages = kLeaf / kPage;

  // The levels behind the last that did; 0: none did.
  struct Levels {
    u32 after_writing, after_reading;

    u32 first(bool written) const { return written && after_reading > after_writing ? after_reading : after_writing; }
    // In a part of it.
    void note(bool written, u32 after) {
      u32& of = written ? after_writing : after_reading;
      if (after > of) of = after;
    }
  };
  // A part of a page, from where the one before it ends.
  struct Piece {
    u32 end;
    Levels levels;
  };
  // Levels are those of all of it; where it is divided, no part has higher ones.
  struct Page {
    Levels levels;
    u32 at;  // its pieces
    u16 count, room;
  };
  struct Leaf {
    Levels levels;
    bool divided;
    u32 at;  // its pages
  };
  struct Slot {
    u64 number;  // of the leaf, and one more: 0 where there is none
    u32 leaf;
  };

  u32 earliest_in(const Leaf& leaf, u32 begin, u32 end, bool written, u32 found) const;
  u32 earliest_in(const Page& page, u32 begin, u32 end, bool written, u32 found) const;
  void note_in(Leaf& leaf, u32 begin, u32 end, bool written, u32 after);
  void note_in(Page& page, u32 begin, u32 end, bool written, u32 after);
  u32 cut(Page& page, u32 at, u32 from);
  std::size_t slot_of(u64 number) const;
  Leaf& leaf_of(u64 number);
  void grow();

  Vec<Slot> slots_;  // by a hash of the number; as many as a power of two
  Vec<Leaf> leaves_;
  Vec<Page> pages_;
  Vec<Piece> pieces_;
};

}  // namespace dnl::cuda
