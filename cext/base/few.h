// Few<T, N>: a list that is usually short; the first N elements need no heap.
//
// For small objects that Python makes anew in every step. Plain data only, it never shrinks.
// Includes: base/vec.h.
#pragma once
#include "base/vec.h"

namespace dnl {

template <class T, int N>
class Few {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return more_.empty() ? few_[i] : more_[i]; }
  void push_back(const T& v) {
    if (size_ < N) {
      few_[size_] = v;
    } else {
      if (size_ == N) std::memcpy(static_cast<void*>(more_.extend(N)), few_, sizeof few_);
      more_.push_back(v);
    }
    ++size_;
  }

 private:
  T few_[N];
  Vec<T> more_;  // holds all elements once there are more than N
  std::size_t size_ = 0;
};

}  // namespace dnl
