// Updates on the GPU: one record a tensor, all tensors of a step in one launch.
// Who may include: backends/cuda. Includes: recorder.h, op/update.h.
#pragma once
#include "backends/cuda/recorder.h"
#include "op/update.h"

namespace dnl::cuda {

void update(Recorder& r, Rule rule, const UpdateSetting& setting, const UpdateTensor& tensor);

}  // namespace dnl::cuda
