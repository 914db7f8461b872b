// Updates on the CPU: one fused pass over weights, gradient, state and decay. Who may include: backends/cpu/.
#pragma once
#include "op/update.h"

namespace dnl {

void update_on_cpu(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all);

}  // namespace dnl
