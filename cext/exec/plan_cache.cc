#include "exec/plan_cache.h"

#include <algorithm>

namespace dnl {
namespace {

// A setting that is new must be named here.
bool same(const EngineSettings& a, const EngineSettings& b) {
  const auto& [strategy, verify, profile, fuse, merge, passes_off, threads, least_work, least_outer, keep_plans] = a;
  return strategy == b.strategy && verify == b.verify && profile == b.profile && fuse == b.fuse && merge == b.merge &&
         passes_off == b.passes_off && threads == b.threads && least_work == b.least_work &&
         least_outer == b.least_outer && keep_plans == b.keep_plans;
}

bool same(const ExecOptions& a, const ExecOptions& b) {
  return same(static_cast<const EngineSettings&>(a), static_cast<const EngineSettings&>(b)) &&
         a.check_validity == b.check_validity && a.touches_looked_up == b.touches_looked_up;
}

}  // namespace

// Whether parts are looked at is decided for a whole graph: each is behind another.
bool PlanCache::may_look(const KnownPlan* before) {
  if (before) return follows_;
  follows_ = false;
  if (!graphs_.look()) return false;
  follows_ = parts_.look();
  return true;
}

KnownPlan* PlanCache::find(const Graph& g, const KnownPlan* before, const ExecOptions& options, bool whole) {
  noted_ = false;
  if (!may_look(before)) return nullptr;
  const u64 id = before ? before->id : 0;
  looks_.see(g, before ? before->graph.end() : GraphSize{}, id);
  Credit& credit = before ? parts_ : graphs_;
  for (std::size_t k = 0; k < plans_.size(); ++k) {
    if (hashes_[k] != looks_.hash) continue;
    KnownPlan& plan = *plans_[k];
    if (plan.before != id || plan.whole != whole || plan.keep_weights != keep_weights_flag()) continue;
    if (!plan.graph.like(g, looks_) || !same(plan.options, options)) continue;
    credit.hit(before ? kOfPart : kOfHit);
    plan.used = ++now_;
    return &plan;
  }
  credit.miss();
  if (before && credit.left == 0) follows_ = false;  // what comes behind this part is not known either
  made_.note(g);
  noted_ = true;
  return nullptr;
}

KnownPlan* PlanCache::keep(const Graph& g, const KnownPlan* before) {
  noted_ = false;
  const GraphSize from = before ? before->graph.end() : GraphSize{};
  std::unique_ptr<KnownPlan> plan;
  plans_.reserve(kMost);
  hashes_.reserve(kMost);
  while (plans_.size() == kMost || nodes_ + g.size() - from.nodes > kMostInAll) plan = take_oldest();
  if (!plan) {
    plan = std::make_unique<KnownPlan>();
    plan->run = std::make_unique<Run>();
    plan->calls = std::make_unique<Runner::KeptCalls>();
  }
  plan->passes.forget();
  plan->calls->forget();
  plan->used = ++now_;
  plan->id = ++ids_;
  plan->before = before ? before->id : 0;
  if (!plan->graph.take(g, from, made_, looks_)) return nullptr;
  plans_.push_back(std::move(plan));
  hashes_.push_back(looks_.hash);
  nodes_ += plans_.back()->graph.nodes();
  return plans_.back().get();
}

std::unique_ptr<KnownPlan> PlanCache::take_oldest() {
  std::size_t oldest = 0;
  for (std::size_t k = 1; k < plans_.size(); ++k)
    if (plans_[k]->used < plans_[oldest]->used) oldest = k;
  return take_out(oldest);
}

std::unique_ptr<KnownPlan> PlanCache::take_out(std::size_t k) {
  std::unique_ptr<KnownPlan> plan = std::move(plans_[k]);
  plans_[k] = std::move(plans_.back());
  plans_.pop_back();
  hashes_[k] = hashes_.back();
  hashes_.pop_back();
  nodes_ -= plan->graph.nodes();
  return plan;
}

void PlanCache::drop(const KnownPlan* plan) {
  for (std::size_t k = plans_.size(); k-- > 0;)
    if (plans_[k].get() == plan) take_out(k);
}

void PlanCache::release() {
  plans_.clear();
  nodes_ = 0;
  graphs_ = parts_ = Credit{};
  release_all(hashes_, looks_, made_);
  noted_ = follows_ = false;
}

}  // namespace dnl
