#include "exec/plan_cache.h"

#include <algorithm>

namespace dnl {
namespace {

// A setting that is new must be named here.
bool same(const EngineSettings& a, const EngineSettings& b) {
  const auto& [strategy, verify, profile, fuse, merge, passes_off, threads, least_work, keep_plans] = a;
  return strategy == b.strategy && verify == b.verify && profile == b.profile && fuse == b.fuse && merge == b.merge &&
         passes_off == b.passes_off && threads == b.threads && least_work == b.least_work && keep_plans == b.keep_plans;
}

bool same(const ExecOptions& a, const ExecOptions& b) {
  return same(static_cast<const EngineSettings&>(a), static_cast<const EngineSettings&>(b)) &&
         a.check_validity == b.check_validity && a.touches_looked_up == b.touches_looked_up;
}

}  // namespace

KnownPlan* PlanCache::find(const Graph& g, const ExecOptions& options, bool whole) {
  noted_ = false;
  if (credit_ <= 0 && ++skipped_ % kSeldom != 0) return nullptr;
  looks_.see(g);
  for (auto& plan : plans_) {
    if (plan->whole != whole || plan->keep_weights != keep_weights_flag()) continue;
    if (!plan->graph.like(g, looks_) || !same(plan->options, options)) continue;
    credit_ = std::min(credit_ + kOfHit, kCredit);
    plan->used = ++now_;
    return plan.get();
  }
  if (credit_ > 0) --credit_;
  made_.note(g);
  noted_ = true;
  return nullptr;
}

KnownPlan* PlanCache::keep(const Graph& g, Backend& backend) {
  noted_ = false;
  if (plans_.size() < kMost) {
    plans_.push_back(std::make_unique<KnownPlan>());
    KnownPlan& made = *plans_.back();
    made.run = std::make_unique<Run>();
    made.calls = std::make_unique<Runner::KeptCalls>();
    made.pass = std::make_unique<BackPass>(g, backend);
  } else {
    auto oldest = std::min_element(plans_.begin(), plans_.end(), [](auto& a, auto& b) { return a->used < b->used; });
    std::swap(*oldest, plans_.back());
  }
  KnownPlan* plan = plans_.back().get();
  plan->pass->ready.there = false;
  plan->used = ++now_;
  if (plan->graph.take(g, made_, looks_)) return plan;
  drop(plan);
  return nullptr;
}

void PlanCache::drop(const KnownPlan* plan) {
  plans_.erase(std::find_if(plans_.begin(), plans_.end(), [&](auto& p) { return p.get() == plan; }));
}

void PlanCache::release() {
  plans_.clear();
  release_all(looks_, made_);
  noted_ = false;
}

}  // namespace dnl
