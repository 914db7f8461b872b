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

KnownPlan* PlanCache::find(const Graph& g, const ExecOptions& options, bool whole) {
  noted_ = false;
  if (credit_ <= 0 && ++skipped_ % kSeldom != 0) return nullptr;
  looks_.see(g);
  for (std::size_t k = 0; k < plans_.size(); ++k) {
    if (hashes_[k] != looks_.hash) continue;
    KnownPlan& plan = *plans_[k];
    if (plan.whole != whole || plan.keep_weights != keep_weights_flag()) continue;
    if (!plan.graph.like(g, looks_) || !same(plan.options, options)) continue;
    credit_ = std::min(credit_ + kOfHit, kCredit);
    plan.used = ++now_;
    return &plan;
  }
  if (credit_ > 0) --credit_;
  made_.note(g);
  noted_ = true;
  return nullptr;
}

KnownPlan* PlanCache::keep(const Graph& g, Backend& backend) {
  noted_ = false;
  std::unique_ptr<KnownPlan> plan;
  plans_.reserve(kMost);
  hashes_.reserve(kMost);
  while (plans_.size() == kMost || nodes_ + g.size() > kMostInAll) plan = take_oldest();
  if (!plan) {
    plan = std::make_unique<KnownPlan>();
    plan->run = std::make_unique<Run>();
    plan->calls = std::make_unique<Runner::KeptCalls>();
    plan->pass = std::make_unique<BackPass>(g, backend);
  }
  plan->pass->ready.there = false;
  plan->used = ++now_;
  if (!plan->graph.take(g, made_, looks_)) return nullptr;
  plans_.push_back(std::move(plan));
  hashes_.push_back(looks_.hash);
  nodes_ += g.size();
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
  credit_ = kCredit;
  skipped_ = 0;
  release_all(hashes_, looks_, made_);
  noted_ = false;
}

}  // namespace dnl
