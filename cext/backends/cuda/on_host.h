// Ops without device code run on the host: what a call reads comes from the GPU, what it writes goes back.
//
// Right for every op, and slow: the GPU is waited for. Rows may repeat and lie over one another in any way; each piece
// of the GPU's memory has one image on the host. Who may include: backends/cuda. Includes: recorder.h, op/op.h.
#pragma once
#include "backends/cuda/recorder.h"
#include "op/op.h"

namespace dnl::cuda {

enum class Part { Forward, Backward, BackwardShared };
// The op's own code.
inline void run_part(const Call& c, Part part, int wrt) {
  if (part == Part::Forward)
    c.op->forward(c);
  else if (part == Part::Backward)
    c.op->backward(c);
  else
    c.op->backward_shared(c, wrt);
}
void run_on_host(Recorder& recorder, const Call& call, Part part, int wrt);

}  // namespace dnl::cuda
