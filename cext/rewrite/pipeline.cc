#include "rewrite/pipeline.h"

#include <algorithm>

#include "rewrite/verify.h"

namespace dnl {

void Pipeline::begin(NodeId from, NodeId unseen, PassSet on, bool verify) {
  rewriter_.begin(from, unseen);
  on_ = on;
  verify_ = verify;
  used_ = 0;
  all_.unread.clear();
  for (Vec<NodeId>& nodes : all_.of) nodes.clear();
  std::fill(changes_, changes_ + kPasses, 0u);
}

void Pipeline::set_nodes(Lane& lane, const Vec<NodeId>& nodes) const {
  lane.end = nodes.data() + nodes.size();
  lane.begin = std::lower_bound(nodes.data(), lane.end, rewriter_.first());
}

bool Pipeline::drop_dead() { return run(PassId::Dead); }

void Pipeline::add_lane(const Vec<NodeId>& nodes) {
  if (used_ == lanes_.size()) lanes_.emplace_back();
  Lane& lane = lanes_[used_++];
  set_nodes(lane, nodes);
  for (Vec<NodeId>& of : lane.of) of.clear();
  rewriter_.add_lane(lane.begin, lane.end);
}

// What was seen goes to the lanes.
void Pipeline::deal() {
  for (u32 role = 0; role < Kind::kRoles; ++role)
    for (NodeId i : all_.of[role])
      if (rewriter_.graph().is_op(i)) lanes_[rewriter_.lane(i)].of[role].push_back(i);
}

// Sums that have become products are among these from now on.
void Pipeline::take_products(Lane& lane) {
  Vec<NodeId>& products = lane.of[Kind::kProduct];
  new_products_.clear();
  for (NodeId i : lane.of[Kind::kSum])
    if (rewriter_.graph().is_op(i) && rewriter_.kind(i).is(Kind::kProduct)) new_products_.push_back(i);
  std::size_t old = products.size(), added = new_products_.size(), at = old + added;
  products.resize(at);
  while (added)
    products[--at] = old && products[old - 1] > new_products_[added - 1] ? products[--old] : new_products_[--added];
}

// Of one that is on; makes a note, and verifies what it left.
bool Pipeline::run(PassId id) {
  const PassInfo& info = pass_info(id);
  if (!has(on_, id)) return false;
  std::unique_ptr<Pass>& pass = passes_[static_cast<u32>(id)];
  if (!pass) pass = info.make();
  pass->begin(rewriter_, on_);
  u32& changes = changes_[static_cast<u32>(id)];
  const u32 lanes = std::max(used_, 1u);
  for (u32 l = 0; l < lanes; ++l) changes += pass->run(rewriter_, lane(l));
  changes += pass->finish(rewriter_);
  if (changes && info.makes_products)
    for (u32 l = 0; l < lanes; ++l) take_products(lane(l));
  rewriter_.note(info.name);
  if (verify_) verify_graph(rewriter_.graph(), rewriter_.first(), uses_, info.name);
  return changes != 0;
}

void Pipeline::see_all(Vec<NodeId>& ops) {
  const Graph& g = rewriter_.graph();
  for (NodeId i = 0; i < g.size(); ++i) {
    if (!g.is_op(i)) continue;
    ops.push_back(i);
    see(i);
  }
}

bool Pipeline::run(const Vec<NodeId>& nodes) {
  if (used_)
    deal();
  else
    set_nodes(all_, nodes);
  bool any = false;
  for (u32 p = static_cast<u32>(PassId::Dead) + 1; p < kPasses; ++p) any |= run(static_cast<PassId>(p));
  return any;
}

void Pipeline::release() {
  rewriter_.release();
  for (auto& pass : passes_)
    if (pass) pass->release();
  for (Vec<NodeId>& nodes : all_.of) nodes.release();
  for (Lane& lane : lanes_)
    for (Vec<NodeId>& nodes : lane.of) nodes.release();
  release_all(uses_, new_products_, all_.unread);
}

void rewrite_ahead(Graph& g, PassSet on, bool verify) {
  Pipeline pipeline(g);
  pipeline.begin(0, 0, on, verify);
  Vec<NodeId> ops;
  pipeline.see_all(ops);
  pipeline.drop_dead();
  pipeline.run(ops);
}

}  // namespace dnl
