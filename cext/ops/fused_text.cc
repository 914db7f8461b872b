#include "ops/fused_text.h"

#include "op/fused.h"

namespace dnl {
namespace {

constexpr std::size_t kMostLetters = 60;  // of an op in a line of text

// The op of a formula: ops know the numbers of their formulas.
const OpDef& op_of(const fused::Step& step) {
  struct Table {
    const OpDef* op[2][256] = {};
    Table() {
      for (int i = 0; i < op_count(); ++i) {
        const OpDef& def = op_def(static_cast<OpId>(i));
        if (def.formula == Formula::Unary || def.formula == Formula::Binary)
          op[def.formula == Formula::Binary][def.formula_id] = &def;
      }
    }
  };
  static const Table table;
  return *table.op[step.binary][step.formula];
}

// A program as a formula: inputs are x0, x1, ..., constants c0, c1, ... An addition of an addition is one of three.
class FormulaText {
 public:
  explicit FormulaText(const Word* key) {
    n_ = key[0].u;
    u32 constants = 0;
    for (u32 k = 0; k < n_; ++k) {
      step_[k] = fused::Step::of(key[1 + k].u);
      constant_[k] = constants;
      constants += static_cast<u32>(op_of(step_[k]).attrs.size());
    }
  }
  // Formulas that stand deeper than that are left out.
  std::string text(u32 depth) const { return operand(fused::kMaxInputs + n_ - 1, depth); }
  u32 steps() const { return n_; }

 private:
  bool adds(u32 operand) const {
    return operand >= fused::kMaxInputs && op_of(step_[operand - fused::kMaxInputs]).name == "add";
  }
  std::string operand(u32 o, u32 depth) const {
    if (o < fused::kMaxInputs) return "x" + std::to_string(o);
    if (depth == 0) return "...";
    const u32 k = o - fused::kMaxInputs;
    const OpDef& op = op_of(step_[k]);
    std::string out, last;
    arguments(k, depth - 1, out, last);
    for (u32 c = 0; c < op.attrs.size(); ++c) out += ", c" + std::to_string(constant_[k] + c);
    return op.name + "(" + out + ")";
  }
  void arguments(u32 k, u32 depth, std::string& out, std::string& last) const {
    if (adds(fused::kMaxInputs + k) && adds(step_[k].a))
      arguments(step_[k].a - fused::kMaxInputs, depth, out, last);
    else
      append(operand(step_[k].a, depth), out, last);
    if (step_[k].binary) append(operand(step_[k].b, depth), out, last);
  }
  static void append(const std::string& argument, std::string& out, std::string& last) {
    if (argument == "..." && last == "...") return;
    out += (out.empty() ? "" : ", ") + argument;
    last = argument;
  }

  u32 n_;
  fused::Step step_[fused::kMaxSteps];
  u32 constant_[fused::kMaxSteps];
};

}  // namespace

std::string fused_text(int, const Word* key, bool whole) {
  const FormulaText f(key);
  u32 depth = f.steps();
  std::string text = f.text(depth);
  if (whole) return text;
  while (text.size() > kMostLetters && depth > 1) text = f.text(--depth);
  return text;
}

}  // namespace dnl
