// Outer products that are left as two vectors: the gradient of a large matrix that a single vector has met.
//
// An example by itself gives a matrix of m x n a gradient of m + n numbers. To form it takes longer than the product
// that it comes from, and its norm and the update read it again. So an executor says where such gradients are wanted
// (exec/leaf_gradients.cc), and gemm_outer() leaves them there; a store forms them for whoever reads (graph/store.h),
// and an update piece by piece (backends/cpu/update.cc). Who may include: anybody. Includes: base/.
#pragma once
#include <cstddef>

#include "base/vec.h"

namespace dnl {

// y times x transposed, m x n column-major, if it is there.
struct OuterLater {
  Vec<float> y, x;
  bool there = false;

  void keep(std::size_t m, const float* rows, std::size_t n, const float* columns);
  double sum_squares() const;
  void add_to(float* matrix) const;
};

// Where a matrix of so many numbers has its gradient, which is zero, and what may be left in its place.
struct OuterWanted {
  const float* at;
  OuterLater* later;
  std::size_t size;
};
// In this thread, while it lives.
class OutersWanted {
 public:
  explicit OutersWanted(const Vec<OuterWanted>& all);
  ~OutersWanted();
  OutersWanted(const OutersWanted&) = delete;
  OutersWanted& operator=(const OutersWanted&) = delete;

 private:
  const Vec<OuterWanted>* before_;
};
// The place for the gradient of a matrix of m x n that lies here, while there is nothing in it; else null.
OuterLater* outer_wanted(const float* at, std::size_t m, std::size_t n);

}  // namespace dnl
