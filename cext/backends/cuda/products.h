// Functions of the GPU's kernel table: products, and the gates of an LSTM, which become one record with the product
// before them. Who may include: backends/cuda. Includes: kernels/kernels.h.
#pragma once
#include "kernels/kernels.h"

namespace dnl::cuda {

void gemm_cols(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add_to, float beta,
               const Rows& c);
void gemm_dots(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add_to, float beta,
               const Rows& c);
void gemm_outer(idx m, idx n, idx k, float alpha, const Rows& a, const Rows& b, float beta, float* c, idx ldc,
                const NextOuter& next);
void lstm_fwd(idx k, idx h, float forget_bias, Rows gates, Rows c_prev, Rows c, Rows h_out);

}  // namespace dnl::cuda
