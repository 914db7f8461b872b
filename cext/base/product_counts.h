// What matrix products did besides multiplying: floats copied because a BLAS wants one distance between columns,
// operands and results; rows of operands or results that were the same memory as another one of the product, so that
// they were not multiplied. Includes: standard library only.
#pragma once
#include <cstdint>

namespace dnl {

struct ProductCounts {
  std::uint64_t gathered = 0, scattered = 0, repeated = 0;

  ProductCounts& operator+=(const ProductCounts& o) {
    gathered += o.gathered;
    scattered += o.scattered;
    repeated += o.repeated;
    return *this;
  }
  ProductCounts operator-(const ProductCounts& o) const {
    return {gathered - o.gathered, scattered - o.scattered, repeated - o.repeated};
  }
};

}  // namespace dnl
