// The GPU's parts of cells: functions of the kernel table (kernels/kernels.h), each of which writes a record.
// Who may include: backends/cuda. Includes: kernels/.
#pragma once
#include "kernels/kernels.h"

namespace dnl::cuda {

void lstm_gates(idx k, idx h, float forget_bias, Rows x, Rows y);
void lstm_gates_bwd(idx k, idx h, Rows y, Rows dy, Rows dx, bool acc);
void lstm_cell(idx k, idx h, Rows gates, Rows c_prev, Rows c);
void lstm_cell_bwd(idx k, idx h, Rows gates, Rows c_prev, Rows dc, Rows dgates, bool acc_g, Rows dc_prev, bool acc_c);
void lstm_output(idx k, idx h, Rows gates, Rows c, Rows y);
void lstm_output_bwd(idx k, idx h, Rows gates, Rows c, Rows dy, Rows dgates, bool acc_g, Rows dc, bool acc_c);
void gru_start(idx k, idx h, Rows proj, Rows za, Rows y);
void gru_start_bwd(idx k, idx h, Rows za, Rows dy, Rows dproj, bool acc);
void coupled_cell(idx k, idx h, Rows gates, Rows c_prev, Rows c);
void coupled_output(idx k, idx h, Rows gates, Rows c, Rows y);
void coupled_output_bwd(idx k, idx h, Rows gates, Rows c, Rows dy, Rows dc, Rows da, Rows total);
void coupled_cell_bwd(idx k, idx h, Rows gates, Rows c_prev, Rows total, Rows da, Rows dc_prev, bool acc);

}  // namespace dnl::cuda
