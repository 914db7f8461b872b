#include "rewrite/kinds.h"

#include "rewrite/affine.h"
#include "rewrite/rules/concat.h"
#include "rewrite/rules/loss.h"
#include "rewrite/rules/sum.h"

namespace dnl {
namespace {

constexpr std::size_t kLeastSize = 8;  // floats; sums of losses stay what they are

}  // namespace

// Elementwise are ops whose arguments have the shape of the result.
Kind Kinds::judge(const Graph& g, u32 s) {
  const Signature& sig = g.sig(s);
  const bool sum = SumFolder::is_sum(sig);
  const Kind other{Kind::kOther, Formula::None, 0, 0, false, sum};
  if (LossFolder::is_loss(sig)) return {Kind::kLoss, Formula::None, 0, 0, false, false};
  if (is_affine(sig)) return {Kind::kProduct, Formula::None, 0, 0, false, false};
  if (ConcatFolder::is_concatenation(sig)) return {Kind::kConcatenation, Formula::None, 0, 0, false, false};
  if (sig.leaf != Leaf::None || sig.alias) return other;
  const OpDef& op = op_def(sig.op);
  if (op.formula == Formula::None || g.dim_by_id(sig.dim[0]).size() < kLeastSize) return other;
  if (sig.nargs > 8 || (sig.nargs == 1 && op.formula == Formula::Sum)) return other;
  for (u32 j = 0; j < sig.nargs; ++j)
    if (g.arg_shared(s, j) || g.stacked_dim(s, j) != sig.dim[0]) return other;
  return {Kind::kElementwise, op.formula, op.formula_id, static_cast<u8>(op.attrs.size()), op.reads_value_only, sum};
}

}  // namespace dnl
