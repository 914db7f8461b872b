// The words of a member that are class labels: how many, then the labels.
// Who may include: the ops of this folder. Includes: op/.
#pragma once
#include <string>

#include "op/called.h"

namespace dnl {

// Value error unless there are as many labels as `wanted`; index error for one that is not in 0 .. classes - 1.
inline void check_labels(const ShapeIn& in, const Word* member, u32 wanted, u32 classes) {
  if (member[0].u != wanted)
    in.bad("needs " + std::to_string(wanted) + (wanted == 1 ? " label" : " labels") + ", got " +
           std::to_string(member[0].u));
  for (u32 k = 0; k < wanted; ++k)
    if (member[1 + k].u >= classes)
      fail_index("[" + called(in) + "] label " + std::to_string(member[1 + k].i) + " is out of range for " +
                 in[0].text());
}

}  // namespace dnl
