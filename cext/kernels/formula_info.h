// What a formula of formulas.h says about itself: name, one line of documentation, attributes with defaults, what its
// gradient reads, and what users call it.
//
// Who may include: kernels/ and the .cc of ops/ that turns formulas into op entries. Includes: nothing.
#pragma once

namespace dnl {

struct FormulaAttr {
  const char* name = nullptr;
  float value = 0;    // the default
  bool flag = false;  // 0 or 1, not a measure
};

// What a gradient reads besides what comes in: the first argument, the second, the value.
enum FormulaReads : unsigned { kReadsNothing = 0, kReadsX = 1, kReadsV = 2, kReadsY = 4, kReadsAll = 7 };

struct FormulaInfo {
  const char* name;
  const char* doc;
  FormulaAttr attr[2] = {};
  bool internal = false;  // reached through operators and other ops, no function of this name for the user
  unsigned reads = kReadsAll;
  // Of an internal one, the public function that it is the most of (OpDef::function). Null: it is an operator, and doc
  // is how programs write it (OpDef::written).
  const char* function = nullptr;

  constexpr int n_attr() const { return attr[1].name ? 2 : attr[0].name ? 1 : 0; }
};

constexpr bool kInternal = true;

}  // namespace dnl
