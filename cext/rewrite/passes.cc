#include "rewrite/passes.h"

namespace dnl {

// Each is at the end of its file in rules/.
std::unique_ptr<Pass> drop_dead();
std::unique_ptr<Pass> merge_alike();
std::unique_ptr<Pass> fold_losses();
std::unique_ptr<Pass> fold_sums();
std::unique_ptr<Pass> fold_attention();
std::unique_ptr<Pass> join_maps();
std::unique_ptr<Pass> fuse_chains();
std::unique_ptr<Pass> fold_concatenations();
std::unique_ptr<Pass> fold_layers();
std::unique_ptr<Pass> bundle_batches();

namespace {

const PassInfo kTable[] = {
    {"dead", "nodes that nothing needs do not run", "first: nobody need look at what goes", drop_dead, {}, false},
    {"merge",
     "equal nodes are computed once",
     "while nodes are as they were made: rewritten ones differ where these are alike",
     merge_alike,
     {},
     false},
    {"loss",
     "a loss and the map that makes its scores are one node",
     "before sums: it takes W * x + b as it is, with less work than as the affine map that it would become",
     fold_losses,
     {"_affine_loss"},
     false},
    {"sum",
     "sums of products and a bias are one affine map",
     "before maps are joined and take concatenations: they do so as one",
     fold_sums,
     {"affine_transform", "_affine"},
     true},
    {"attention",
     "the scores of additive attention are one node",
     "before tanh and the sum become parts of chains",
     fold_attention,
     {"_attention_scores"},
     false},
    {"join",
     "affine maps of the same inputs that chains read are one node",
     "when sums have become maps, and before other chains: those that read parts of it are written with it",
     join_maps,
     {"_affines", "_fused", "_fused_with_constants"},
     false},
    {"fuse",
     "chains of elementwise ops are one node",
     "when sums have become what they will be",
     fuse_chains,
     {"_fused", "_fused_with_constants"},
     false},
    {"concat",
     "products read the parts of a concatenation without a copy",
     "on products that are left: those that were joined read it whole",
     fold_concatenations,
     {"_affine"},
     false},
    {"layer",
     "a function of an affine map of a concatenation is one node",
     "on maps and concatenations that are left, and functions by themselves",
     fold_layers,
     {"_layer"},
     false},
    {"bundle",
     "a mini-batch made of single nodes is read without a copy",
     "last: whatever reads the mini-batch is what it will be",
     bundle_batches,
     {},
     false},
};
static_assert(sizeof(kTable) / sizeof(kTable[0]) == kPasses, "one row a pass, in the order of PassId");

}  // namespace

const PassInfo& pass_info(PassId id) { return kTable[static_cast<u32>(id)]; }

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
