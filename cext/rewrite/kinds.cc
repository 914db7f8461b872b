#include "rewrite/kinds.h"

#include "rewrite/affine.h"

namespace dnl {
namespace {

constexpr std::size_t kLeastSize = 8;  // floats; sums of losses stay what they are
constexpr u32 kMostArgs = 8;

constexpr u8 bit(Kind::Role role) { return static_cast<u8>(1u << role); }

// An op of a formula, all of whose arguments have the shape of the result.
bool is_elementwise(const Graph& g, u32 s) {
  const Signature& sig = g.sig(s);
  if (sig.leaf != Leaf::None || sig.alias) return false;
  const OpDef& op = op_def(sig.op);
  if (op.formula == Formula::None || g.dim_by_id(sig.dim[0]).size() < kLeastSize) return false;
  if (sig.nargs > kMostArgs || (sig.nargs == 1 && op.formula == Formula::Sum)) return false;
  for (u32 j = 0; j < sig.nargs; ++j)
    if (g.arg_shared(s, j) || g.stacked_dim(s, j) != sig.dim[0]) return false;
  return true;
}

}  // namespace

void Kinds::grow(const Graph& g) {
  const std::size_t known = kinds_.size();
  kinds_.resize(g.signatures());
  for (std::size_t s = known; s < kinds_.size(); ++s) kinds_[s].known = false;
}

Kind Kinds::judge(const Graph& g, NodeId i) {
  const u32 s = g.node(i).sig;
  const Signature& sig = g.sig(s);
  Kind k;
  k.known = true;
  if (is_loss(sig)) {
    k.roles = bit(Kind::kLoss);
  } else if (is_affine(sig)) {
    k.roles = bit(Kind::kProduct);
    k.maps = maps_vectors(g, i);
    k.long_rows = k.maps && has_long_rows(g, i);
    k.joins = can_be_joined(g, i);
  } else if (is_concatenation(sig)) {
    k.roles = bit(Kind::kConcatenation);
  } else {
    if (is_sum(sig)) k.roles = bit(Kind::kSum);
    if (!is_elementwise(g, s)) return k;
    const OpDef& op = op_def(sig.op);
    k.roles |= bit(Kind::kElementwise);
    k.formula = op.formula;
    k.id = op.formula_id;
    k.constants = static_cast<u8>(op.attrs.size());
    k.reads_value_only = op.reads_value_only;
  }
  return k;
}

}  // namespace dnl
