#include "rewrite/rules/bundle.h"

namespace dnl {
namespace {

struct Ops {
  OpId list = op_by_name("concatenate_to_batch"), affine = op_by_name("affine_transform"), product = op_by_name("matmul"),
       loss = op_by_name("_affine_loss"), concatenation = op_by_name("concatenate");
  // Ops that compute the elements of a mini-batch as they do members of a batch; a list of member attributes has one for each.
  bool takes(OpId op) const { return op == affine || op == product || op == loss || op == concatenation; }
};
const Ops& ops() {
  static const Ops all;
  return all;
}

}  // namespace

void Bundler::begin(NodeId from) {
  from_ = from;
  takers_.clear();
}

// A mini-batch of so many elements that has not run, each from a node of its own.
bool Bundler::is_list(const Graph& g, NodeId i, u32 elements) const {
  return i >= from_ && g.signature(i).op == ops().list && g.foldable(i) && g.nargs(i) == elements && g.dim(i).bd == elements;
}

bool Bundler::fits(const Graph& g, NodeId i) const {
  const Signature& sig = g.signature(i);
  if (!ops().takes(sig.op) || sig.items > 1) return false;
  const NodeId* args = g.operands(i);
  bool any = false;
  for (u32 j = 0; j < sig.nargs; ++j) {
    if (g.arg_shared(g.node(i).sig, j) ? g.dim(args[j]).bd != 1 : !is_list(g, args[j], g.dim(i).bd)) return false;
    any |= !g.arg_shared(g.node(i).sig, j);
  }
  return any;
}

bool Bundler::finish(Graph& g) {
  bool any = false;
  for (NodeId i : takers_) {
    if (!g.is_op(i) || !fits(g, i)) continue;
    rewrite(g, i);
    any = true;
  }
  return any;
}

void Bundler::rewrite(Graph& g, NodeId i) {
  const u32 s = g.node(i).sig, nargs = g.nargs(i);
  args_.clear();
  for (u32 e = 0; e < g.dim(i).bd; ++e)
    for (u32 j = 0; j < nargs; ++j) {
      const NodeId a = g.operands(i)[j];
      if (!g.arg_shared(s, j)) args_.push_back(g.operands(a)[e]);
      else if (e == 0) args_.push_back(a);
    }
  for (u32 j = 0; j < nargs; ++j)
    if (!g.arg_shared(s, j)) g.mark_fused(g.operands(i)[j], i);
  g.bundle(i, args_.data(), static_cast<u32>(args_.size()));
}

}  // namespace dnl
