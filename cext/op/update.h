// What an update of trained numbers is, in plain data: a rule, its setting, and the tensors that it changes.
//
// A backend gets all tensors of a step in one list (Backend::update). What c[] and the states mean to each rule is told
// in kernels/updates.h. Who may include: backends/, exec/, bindings/. Includes: base/.
#pragma once
#include <cstddef>
#include <string>

#include "base/outer_later.h"
#include "base/vec.h"

namespace dnl {

enum class Rule : u8 { Sgd, Momentum, Adagrad, Adadelta, RmsProp, Adam, Amsgrad, Eg };

struct UpdateRule {
  const char* name;
  Rule id;
  int states;          // state vectors per number
  bool can_skip;       // a zero gradient changes nothing
  bool whole = false;  // looks at all numbers of a tensor, or of a row, at once
};
// Throws Error(Value) for a name that is none.
const UpdateRule& update_rule(const std::string& name);

struct UpdateSetting {
  float c[6];
  float gscale = 1;               // gradients are multiplied by it first: clipping
  const float* factor = nullptr;  // likewise, a number in the backend's memory; where it is NaN gradients are cleared
                                  // and nothing else changes. Not for rules that look at the `whole`
  float wdecay = 0;               // weights are multiplied by (1 - wdecay) afterwards
};

// Numbers that one rule updates. Addresses are the backend's, lists the host's. One of three:
//   numbers    rows is 1, no list
//   some rows  `row`: gradient k is that of row[k] of w
//   all rows   `slot`: the gradient of row r is number slot[r] of g; it has none where that is negative
struct UpdateTensor {
  std::size_t rows, n;  // how many rows are updated, and the size of one
  float* w;             // weights: of row 0 where rows are listed
  float* g;             // gradients; zero after an update of numbers, whatever they are after one of rows
  float* s[3] = {};     // states, which lie as the weights do
  const u32* row = nullptr;
  const i32* slot = nullptr;
  const float* from = nullptr;        // of numbers: where they are before the update, unless in w
  float* old = nullptr;               // where those of before are kept, row after row, or null
  const OuterLater* outer = nullptr;  // of numbers: their gradient; those at g are zero
};

// Elementwise rules may be dealt in units without a difference to any number: so many numbers, or rows of n of them
// where all rows are updated. A multiple of what kernels take at a time, and few enough to stay in the nearest cache
// between a copy and the rule.
constexpr std::size_t kUpdateUnit = 4096;
inline std::size_t rows_of_unit(const UpdateRule& rule, std::size_t n) {
  constexpr std::size_t kStep = 16, kNarrow = 64;
  return n == 0 || n > kNarrow || rule.whole ? 1 : kUpdateUnit / (kStep * n) * kStep;
}

}  // namespace dnl
