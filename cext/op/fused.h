// The program of a fused node: several elementwise ops that run one after another on a piece of memory that stays in
// the nearest cache. Written by rewrite/rules/fuse.cc, run by ops/fused.cc and by backends with code of their own.
//
// A program is a list of steps, one word each. A step applies a formula to inputs of the node or to results of
// steps before it; each result is read once, by a later step, and the last is the node's value. Inputs are the
// arguments, or parts of them: then the node says the size of a part and for each the argument and where in it the part
// begins. A step may leave its result where its input lies, a part that nobody else reads, so that backward finds it
// there. Who may include: graph/, ops/, backends/. Includes: op/op.h.
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
inline bool is_step(u32 operand) { return operand >= kMaxInputs; }

// `parts`: the key words behind the steps.
inline u32 count_inputs(const Word* parts, int nargs) { return parts[0].u ? parts[0].u / 2 : static_cast<u32>(nargs); }
// `formulas`: the kernel table (kernels/kernels.h), which this folder does not know.
template <class Table>
int count_constants(const Step& s, const Table& formulas) {
  return s.binary ? formulas.binary[s.formula].n_attr : formulas.unary[s.formula].n_attr;
}

// What the gradient of a formula reads, as it says itself (FormulaReads of kernels/formula_info.h).
constexpr unsigned kReadsFirst = 1, kReadsSecond = 2, kReadsResult = 4;

// The program of a call, taken apart.
struct Program {
  // An input: an argument, or a part of one.
  struct Input {
    int arg;
    std::ptrdiff_t at;  // where it begins
  };
  u32 n = 0, inputs = 0, constants = 0;
  Step step[kMaxSteps];
  u32 constant[kMaxSteps];    // the first one of a step
  unsigned reads[kMaxSteps];  // what its gradient reads
  Input input[kMaxInputs];

  template <class Table>
  Program(const Call& c, const Table& formulas) : n(c.key[0].u) {
    const Word* parts = c.key + 1 + n;
    inputs = count_inputs(parts, c.nargs);
    for (u32 k = 0; k < inputs; ++k)
      input[k] = parts[0].u ? Input{parts[2 + 2 * k].i, parts[3 + 2 * k].i} : Input{static_cast<int>(k), 0};
    for (u32 k = 0; k < n; ++k) {
      const Step& s = step[k] = Step::of(c.key[1 + k].u);
      constant[k] = constants;
      reads[k] = s.binary ? formulas.binary[s.formula].reads : formulas.unary[s.formula].reads;
      constants += static_cast<u32>(count_constants(s, formulas));
    }
  }
};

// What the gradients of a program read and write.
struct Needs {
  bool wanted[kMaxSteps];      // a gradient flows through this step to an input that wants one
  bool value[kMaxSteps] = {};  // its result is read
  bool input[kMaxInputs] = {};

  Needs(const Call& c, const Program& p) {
    for (u32 k = 0; k < p.n; ++k) wanted[k] = of(c, p, p.step[k].a) || (p.step[k].binary && of(c, p, p.step[k].b));
    for (u32 k = p.n; k-- > 0;) {
      const Step& s = p.step[k];
      if (wanted[k]) {
        if (p.reads[k] & kReadsFirst) need(s.a);
        if (s.binary && p.reads[k] & kReadsSecond) need(s.b);
        value[k] |= (p.reads[k] & kReadsResult) != 0;
      }
      if (!value[k] || k == p.n - 1) continue;  // the last one is there
      need(s.a);
      if (s.binary) need(s.b);
    }
  }
  bool of(const Call& c, const Program& p, u32 operand) const {
    return is_step(operand) ? wanted[operand - kMaxInputs] : c.dx[p.input[operand].arg].wanted();
  }

 private:
  void need(u32 operand) { (is_step(operand) ? value[operand - kMaxInputs] : input[operand]) = true; }
};

}  // namespace dnl::fused
