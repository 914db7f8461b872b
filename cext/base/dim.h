// Dim: the shape of a value, column-major, up to seven dims, and beside them the size of the manual mini-batch and the
// type of its numbers.
//
// As in DyNet a missing trailing dim counts as 1 for indexing, but {3} and {3,1} are different shapes.
// Includes: standard library only.
#pragma once
#include <cstddef>
#include <cstring>
#include <string>

#include "base/vec.h"

namespace dnl {

constexpr int kMaxDims = 7;

// What one number is. Part of a shape's identity: signatures name shapes, so values of unlike types never run in one
// batch or lie in one slab. What another type takes beside a line here is told in docs/engine/graph.md.
enum class DType : u8 { F32 };

struct Dim {
  u32 d[kMaxDims] = {0, 0, 0, 0, 0, 0, 0};
  u32 bd = 1;  // mini-batch elements
  u32 nd = 0;  // number of dims
  DType type = DType::F32;

  Dim() = default;
  Dim(std::initializer_list<u32> dims, u32 batch = 1) : bd(batch) {
    for (u32 v : dims) d[nd++] = v;
  }

  u32 operator[](u32 i) const { return i < nd ? d[i] : 1; }
  u32 rows() const { return (*this)[0]; }
  u32 cols() const { return (*this)[1]; }
  // Numbers in one batch element, and in all of them.
  std::size_t batch_size() const {
    std::size_t n = 1;
    for (u32 i = 0; i < nd; ++i) n *= d[i];
    return n;
  }
  std::size_t size() const { return batch_size() * bd; }
  bool same_shape(const Dim& o) const { return nd == o.nd && std::memcmp(d, o.d, nd * sizeof(u32)) == 0; }
  // Equal when missing trailing dims are read as 1.
  bool like(const Dim& o) const {
    for (u32 i = 0; i < (nd > o.nd ? nd : o.nd); ++i)
      if ((*this)[i] != o[i]) return false;
    return true;
  }
  bool operator==(const Dim& o) const { return bd == o.bd && type == o.type && same_shape(o); }
  bool operator!=(const Dim& o) const { return !(*this == o); }
  bool is_vector() const { return nd <= 1 || (nd == 2 && d[1] == 1); }

  void push(u32 v) { d[nd++] = v; }
  // Remove dim i; a shape that loses its last dim becomes {1}.
  void remove(u32 i) {
    for (u32 j = i; j + 1 < nd && j + 1 < kMaxDims; ++j) d[j] = d[j + 1];
    if (nd > 0) d[--nd] = 0;
    if (nd == 0) push(1);
  }
  // "{2,3}" or "{2,3}X4"
  std::string text() const {
    std::string s = "{";
    for (u32 i = 0; i < nd; ++i) s += (i ? "," : "") + std::to_string(d[i]);
    s += "}";
    if (bd != 1) s += "X" + std::to_string(bd);
    return s;
  }
};

}  // namespace dnl
