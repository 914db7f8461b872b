// The GPUs that the driver knows, and the one that was chosen. Nothing is asked of the driver before the first
// question. Who may include: backends/cuda. Includes: driver.h, op/devices.h.
#pragma once
#include "backends/cuda/driver.h"
#include "op/devices.h"

namespace dnl::cuda {

struct Choice {
  int number = 0;
  std::string image;   // kernels for it; empty: the driver brings them
  std::string cublas;  // where that library lies; empty: nobody knows
};

// That the backend opens when it is first used. Throws Error(Runtime) when no kernels came with the choice.
Choice take_choice();
void gave_up_choice();  // it could not be opened: another may be chosen

}  // namespace dnl::cuda
