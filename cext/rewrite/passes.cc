#include "rewrite/passes.h"

namespace dnl {
namespace {

const Pass kTable[] = {
    {"dead", "what nothing reads and no expression refers to does not run", "first: nobody need look at what goes", {}},
    {"merge", "nodes that would compute the same are computed once",
     "while nodes are as they were made: rewritten ones differ where these are alike", {}},
    {"loss", "a loss and the map that makes its scores are one node",
     "before sums: it takes W * x + b as it is, with less work than as the affine map that it would become", {"_affine_loss"}},
    {"sum", "sums of products and a bias are one affine map", "before maps are joined and take concatenations: they do so as one",
     {"affine_transform", "_products"}},
    {"attention", "the scores of additive attention are one node", "before tanh and the sum become parts of chains", {"_attention_scores"}},
    {"fuse", "chains of elementwise ops are one node", "when sums have become what they will be", {"_fused", "_fused_with_constants"}},
    {"join", "affine maps of the same inputs that chains read are one node",
     "between finding the chains and writing them: these read their parts of it", {"_affines1", "_affines2", "_affines3"}},
    {"concat", "products read the parts of a concatenation where they lie", "on products that are left: those that were joined read it whole",
     {"_affine_parts", "_product_parts"}},
    {"bundle", "a mini-batch made of single nodes is read where they lie", "last: whatever reads the mini-batch is what it will be", {}},
};
static_assert(sizeof(kTable) / sizeof(kTable[0]) == kPasses, "one row a pass, in the order of PassId");

}  // namespace

const Pass& pass(PassId id) { return kTable[static_cast<u32>(id)]; }

PassSet passes_of(const Backend& backend) {
  PassSet set = kAllPasses;
  for (u32 p = 0; p < kPasses; ++p)
    for (const char* op : kTable[p].makes)
      if (op && !backend.supports(op_by_name(op))) set &= ~(1u << p);
  return set;
}

PassId pass_by_name(const std::string& name) {
  std::string names;
  for (u32 p = 0; p < kPasses; ++p) {
    if (name == kTable[p].name) return static_cast<PassId>(p);
    names += (p ? ", " : "") + std::string(kTable[p].name);
  }
  fail_value("[rewrites] no pass '" + name + "'; there are " + names);
}

}  // namespace dnl
