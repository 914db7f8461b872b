// The program of a fused node: several elementwise ops that run one after another on a piece of memory that stays in
// the nearest cache. Written by rewrite/rules/fuse.cc, run by ops/fused.cc.
//
// A program is a list of steps, one word each. A step applies a formula to inputs of the node or to results of
// steps before it; each result is read once, by a later step, and the last is the node's value. Inputs are the
// arguments, or parts of them: then the node says the size of a part and for each the argument and where in it the part
// begins. A step may leave its result where its input lies, a part that nobody else reads, so that backward finds it
// there. Who may include: graph/, ops/. Includes: op/op.h.
#pragma once
#include "op/op.h"

namespace dnl::fused {

constexpr u32 kMaxInputs = 16, kMaxSteps = 24;

// Operands: inputs are numbered from 0, results of steps from kMaxInputs.
struct Step {
  u8 formula;
  bool binary;
  u8 a, b;            // b only of a binary one
  bool over = false;  // the result lies over the input

  u32 word() const {
    return formula | (binary ? 0x100u : 0u) | (over ? 0x200u : 0u) | static_cast<u32>(a) << 10 |
           static_cast<u32>(b) << 18;
  }
  static Step of(u32 w) {
    return {static_cast<u8>(w), (w & 0x100u) != 0, static_cast<u8>(w >> 10), static_cast<u8>(w >> 18),
            (w & 0x200u) != 0};
  }
};

}  // namespace dnl::fused
