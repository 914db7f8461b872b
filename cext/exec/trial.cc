#include "exec/trial.h"

#include <algorithm>

namespace dnl {

void Trial::begin_pass(std::int64_t time, std::int64_t work) {
  if (open_ && (++passes_ < kPasses || time - time_ < kWindow)) return;
  if (open_ && work > work_ && time > time_)
    judge(static_cast<double>(time - time_) / static_cast<double>(work - work_));
  open_ = true;
  passes_ = 0;
  time_ = time;
  work_ = work;
}

// cost: the time of a second of work in the window that ends. Windows differ: a bad one is seen beside those before it.
void Trial::judge(double cost) {
  double& known = cost_[several_];
  known = known > 0 && !(several_ && cost < kEqual) ? (known + cost) / 2 : cost;
  if (trying_) {
    trying_ = false;
    const double one = cost_[0], several = cost_[1];
    const bool better = several_ == (several < one * kEqual);
    keep_ = better ? kFirst : std::min(keep_ * 2, kMost);
    if (!better) several_ = !several_;
    left_ = keep_;
  } else if (left_ > 0) {
    --left_;
  } else if (!several_ || known >= kEqual) {
    trying_ = true;
    several_ = !several_;
  }
}

}  // namespace dnl
