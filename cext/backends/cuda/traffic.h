// Which levels of waves have read and written which memory last: by this the recorder knows what waits for what.
//
// Exact to the byte. A table finds the node of each stretch of memory by its number. One whose bytes do not all have
// the same levels is divided into smaller ones, the smallest into pieces. A record of 64 scattered rows asks and notes
// some hundred spans, small ones as a rule, that begin and end where earlier ones did; a weight is a few whole nodes.
// So both cost a few steps. Who may include: backends/cuda. Includes: base/.
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
  // Bits of numbers of bytes in a node: of one that is in the table, in its parts, and so on; the last have pieces.
  static constexpr u32 kTop = 20, kStep = 4, kPage = 12, kParts = 1u << kStep;

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
  // Levels are those of all of it; where it is divided, no part has higher ones.
  struct Node {
    Levels levels;
    u32 at;           // of its parts or pieces
    u16 count, room;  // of them; none: it is not divided
  };
  // A part of the smallest nodes, from where the one before it ends.
  struct Piece {
    u32 end;
    Levels levels;
  };
  struct Slot {
    u64 number;  // of the node, and one more: 0 where there is none
    u32 node;
  };

  template <u32 bits>
  u32 earliest_in(const Node& node, u32 begin, u32 end, bool written, u32 found) const;
  template <u32 bits>
  void note_in(u32 node, u32 begin, u32 end, bool written, u32 after);
  template <u32 bits>
  void divide(u32 node);
  void note_pieces(Node& page, u32 begin, u32 end, bool written, u32 after);
  u32 cut(Node& page, u32 at, u32 from);
  std::size_t slot_of(u64 number) const;
  u32 node_of(u64 number);
  void grow();

  Vec<Slot> slots_;  // by a hash of the number; as many as a power of two
  std::size_t used_ = 0;
  Vec<Node> nodes_;
  Vec<Piece> pieces_;
};

}  // namespace dnl::cuda
