#include "base/outer_later.h"

#include "base/tls.h"

namespace dnl {
namespace {

DNL_QUICK_TLS thread_local const Vec<OuterWanted>* t_wanted = nullptr;

double squares(const Vec<float>& v) {
  double sum = 0;
  for (float f : v) sum += static_cast<double>(f) * static_cast<double>(f);
  return sum;
}

}  // namespace

void OuterLater::keep(std::size_t m, const float* rows, std::size_t n, const float* columns) {
  y.copy(rows, m);
  x.copy(columns, n);
  there = true;
}

double OuterLater::sum_squares() const { return squares(y) * squares(x); }

void OuterLater::add_to(float* matrix) const {
  for (float f : x) {
    for (std::size_t i = 0; i < y.size(); ++i) matrix[i] += f * y[i];
    matrix += y.size();
  }
}

OutersWanted::OutersWanted(const Vec<OuterWanted>& all) : before_(t_wanted) { t_wanted = &all; }
OutersWanted::~OutersWanted() { t_wanted = before_; }

OuterLater* outer_wanted(const float* at, std::size_t m, std::size_t n) {
  if (!t_wanted) return nullptr;
  for (const OuterWanted& w : *t_wanted)
    if (w.at == at && w.size == m * n && !w.later->there) return w.later;
  return nullptr;
}

}  // namespace dnl
