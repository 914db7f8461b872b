// The table of arithmetic kernels: pointers and sizes in, numbers out.
//
// Kernels know nothing of graphs, dims or ops. Each is compiled once per instruction set (baseline, AVX2+FMA,
// AVX-512) from isa_body.h; kernels() picks the best table the processor runs, once. Names of pointers carry their
// axes: x__ri is rows by i, i running fastest. Unless said, outputs may not overlap inputs except when equal
// (in place), sizes may be 0, and nothing needs alignment. `acc` false: the output is overwritten (it may hold
// anything before); true: the result is added to it.
// Who may include: ops/, backends/, exec/ (updates), bindings/ (the name of the instruction set). Includes: base/.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/rows.h"

namespace dnl {

using idx = std::ptrdiff_t;

// Elementwise formulas (formulas.h) live in two lists; their position is their id.
//   unary:  y[i]  = f(x[i]; a)          dx[i] (+)= df(x[i], y[i], dy[i]; a)
//   binary: y[i]  = f(u[i], v[i]; a)    du[i] (+)= ..., dv[i] (+)= ... (a null du or dv is not computed)
// `a` points to the formula's attributes as floats (may be null when it has none).
// Binary strides su, sv are 0 or 1: 0 means one number for all i. A gradient of a stride-0 operand is the sum
// over i (added to or stored in the one number).
struct UnaryKernel {
  const char* name;
  void (*fwd)(idx n, const float* x, float* y, const float* a);
  void (*bwd)(idx n, const float* x, const float* y, const float* dy, float* dx, const float* a, bool acc);
  int n_attr;
  unsigned reads;  // by bwd: FormulaReads bits; the other pointers are not followed
};
struct BinaryKernel {
  const char* name;
  void (*fwd)(idx n, const float* u, idx su, const float* v, idx sv, float* y, const float* a);
  void (*bwd)(idx n, const float* u, idx su, const float* v, idx sv, const float* y, const float* dy, float* du,
              bool acc_u, float* dv, bool acc_v, const float* a);
  int n_attr;
  unsigned reads;
};

// What an optimizer's update of n numbers needs; the meaning of c[] is told at each kernel.
struct UpdateArgs {
  idx n;
  float* w;   // weights
  float* g;   // gradient; set to zero by the update
  float* s0;  // state vectors, as many as the rule has
  float* s1;
  float* s2;
  float gscale;  // gradient is multiplied by this first (clipping)
  float wdecay;  // weights are multiplied by (1 - wdecay) after the update
  float c[6];
  // Instead of g, and never for eg: the gradient is y times x transposed, column-major, with so many rows. n is a
  // multiple.
  const float* y;
  const float* x;
  idx rows;
};

struct Kernels {
  const char* isa;  // "baseline", "avx2", "avx512", "neon"

  const UnaryKernel* unary;  // by id, see formulas.h
  int n_unary;
  const BinaryKernel* binary;
  int n_binary;

  // ---- moving and adding -------------------------------------------------------------------------------------
  void (*fill)(idx n, float v, float* y);
  void (*add)(idx n, const float* x, float* y);                          // y += x
  void (*axpy)(idx n, float a, const float* x, float* y);                // y += a x
  void (*scale)(idx n, float a, float* x);                               // x *= a
  void (*scale_to)(idx n, float a, const float* x, float* y, bool acc);  // y (+)= a x
  // k rows of n floats, any layout to any layout; copy, or add (rows of `to` may repeat when adding).
  void (*copy_rows)(idx k, idx n, Rows from, Rows to);
  void (*add_rows)(idx k, idx n, Rows from, Rows to);
  void (*sum_rows)(idx k, idx n, Rows from, float* y, bool acc);  // y__n (+)= column sums of k rows
  // Row m of y, rows `step` apart, is a__k[m] times row m of x; what the rows come to is added to sums__n, which may be
  // null.
  void (*scale_rows)(idx k, idx n, Rows x, const float* a__k, float* y, idx step, float* sums__n);
  void (*transpose)(idx m, idx n, const float* x__nm, float* y__mn, bool acc);  // x[j*m+i] -> y[i*n+j]
  // The same for k rows of n floats that lie anywhere apart: x[i*from_step+j] -> y[j*to_step+i].
  void (*transpose_strided)(idx k, idx n, const float* x, idx from_step, float* y, idx to_step, bool acc);

  // ---- reductions --------------------------------------------------------------------------------------------
  float (*sum)(idx n, const float* x);  // pairwise or blocked: error grows slowly with n
  double (*sum_squares)(idx n, const float* x);
  float (*dot)(idx n, const float* x, const float* y);
  float (*max)(idx n, const float* x);   // NaN if any is NaN
  idx (*argmax)(idx n, const float* x);  // first of the largest
  bool (*all_finite)(idx n, const float* x);

  // ---- softmax family, over n contiguous numbers ---------------------------------------------------------------
  // Stable; rows of all -inf give logsumexp -inf and softmax 0, never NaN; +-inf and huge entries are right.
  float (*logsumexp)(idx n, const float* x);
  // The exponentials of numbers that come piece by piece, and their sum. y = exp(x - m), m the largest number so far
  // or, if it is not far below that, the one of an earlier piece, which *largest (-inf at first) becomes; *sum (0 at
  // first), relative to *largest before, is made relative to m and gets y added. Where m is inf: y is 1 at inf and 0
  // elsewhere; where m is NaN: all is NaN. y may be x.
  void (*exp_below)(idx n, const float* x, float* y, float* largest, double* sum);
  void (*softmax)(idx n, const float* x, float* y);
  void (*softmax_bwd)(idx n, const float* y, const float* dy, float* dx, bool acc);
  void (*log_softmax)(idx n, const float* x, float* y);
  void (*log_softmax_bwd)(idx n, const float* y, const float* dy, float* dx, bool acc);
  // dx (+)= d * exp(x - lse); where x is -inf: 0. The gradient of logsumexp with incoming d.
  void (*exp_shifted)(idx n, const float* x, float lse, float d, float* dx, bool acc);

  // ---- layer norm over n contiguous numbers: y = g (x - mean) / std + b, population std -------------------------
  // stats[0] = mean, stats[1] = 1 / std (saved for backward); a zero variance gives y = b and zero dx.
  void (*layer_norm)(idx n, const float* x, const float* g, const float* b, float* y, float* stats);
  // dg, db are added to (null: not wanted); dx as acc says (null: not wanted).
  void (*layer_norm_bwd)(idx n, const float* x, const float* g, const float* stats, const float* dy, float* dx,
                         bool acc, float* dg, float* db);

  // ---- additive attention: scores__c of the columns of keys__nc, sum_i v_i tanh(keys_ij + query_i) -----------------
  void (*attention_scores)(idx n, idx columns, const float* keys, const float* query, const float* v, float* scores);
  // dquery and dv are added to; dkeys as acc says. dkeys and dquery may be null: not wanted.
  void (*attention_scores_bwd)(idx n, idx columns, const float* keys, const float* query, const float* v,
                               const float* dscores, float* dkeys, bool acc, float* dquery, float* dv);

  // ---- recurrent cells, k rows; `h` is the hidden size --------------------------------------------------------
  // LSTM. a__rn: pre-activations, 4h a row in DyNet's order i, f, o, g (rows of `gates`), forget_bias is added to f.
  // In place: gates become activations. c_prev may be "not wanted" (Rows{}): zero state.
  //   c = f * c_prev + i * g ;  h = o * tanh(c)
  void (*lstm_fwd)(idx k, idx h, float forget_bias, Rows gates, Rows c_prev, Rows c, Rows h_out);
  // dh, dc: incoming (either may be "not wanted" = zero). Writes da (pre-activation gradients, 4h a row; may be the
  // memory of the gates unless acc_a) as acc_a says, and dc_prev as acc_c says (not computed when not wanted). c_prev
  // as above.
  void (*lstm_bwd)(idx k, idx h, Rows gates, Rows c_prev, Rows c, Rows dh, Rows dc, Rows da, bool acc_a, Rows dc_prev,
                   bool acc_c);
  // GRU (DyNet): z = sigmoid(az), r = sigmoid(ar) from the first two thirds of a__r3h; the op forms r * h_prev, the
  // candidate's pre-activation, then h = (1 - z) * h_prev + z * tanh(ac).
  void (*gru_zr_fwd)(idx k, idx h, Rows zr /* 2h, in place */, Rows h_prev, Rows rh /* r*h_prev */);
  void (*gru_out_fwd)(idx k, idx h, Rows zr, Rows h_prev, Rows cand /* in place tanh */, Rows h_out);
  // From dh: dcand_pre (h a row, overwritten), dz_pre into the first h of dzr (2h a row, overwritten there only), and
  // dh_prev as acc says, the direct (1 - z) part only.
  void (*gru_out_bwd)(idx k, idx h, Rows zr, Rows h_prev, Rows cand, Rows dh, Rows dcand, Rows dzr, Rows dh_prev,
                      bool acc);
  // From drh (gradient of r*h_prev): dr_pre into the second h of dzr; dh_prev += r * drh (not when not wanted).
  void (*gru_zr_bwd)(idx k, idx h, Rows zr, Rows h_prev, Rows drh, Rows dzr, Rows dh_prev);
  // Tree LSTM gate pass with one forget gate per child: a row holds i, o, g (3h) in `iog`, and f for each of the
  // n_children children in f[j] (h a row); all pre-activations, in place. c = i*g + sum_j f_j * c_j; h = o * tanh(c).
  void (*tree_lstm_fwd)(idx k, idx h, int n_children, Rows iog, const Rows* f, const Rows* c_child, float forget_bias,
                        Rows c, Rows h_out);
  void (*tree_lstm_bwd)(idx k, idx h, int n_children, Rows iog, const Rows* f, const Rows* c_child, Rows c, Rows dh,
                        Rows dc, Rows diog, const Rows* df, const Rows* dc_child, const bool* acc_child);

  // ---- parts of cells, k rows, for cells that are put together of several ops or have products in between --------
  // The gates of an LSTM from their sums x, blocks i, f, o, g of h numbers a row: y, which may be x.
  void (*lstm_gates)(idx k, idx h, float forget_bias, Rows x, Rows y);
  void (*lstm_gates_bwd)(idx k, idx h, Rows y, Rows dy, Rows dx, bool acc);
  // c = f * c_prev + i * g of such gates. Gradients that are not wanted are not computed; that of the gates has zeros,
  // or nothing added, where they take no part.
  void (*lstm_cell)(idx k, idx h, Rows gates, Rows c_prev, Rows c);
  void (*lstm_cell_bwd)(idx k, idx h, Rows gates, Rows c_prev, Rows dc, Rows dgates, bool acc_g, Rows dc_prev,
                        bool acc_c);
  // y = o * tanh(c), likewise.
  void (*lstm_output)(idx k, idx h, Rows gates, Rows c, Rows y);
  void (*lstm_output_bwd)(idx k, idx h, Rows gates, Rows c, Rows dy, Rows dgates, bool acc_g, Rows dc, bool acc_c);
  // A GRU from zero state: za, 2h a row, gets sigmoid of block z and tanh of block h of proj, blocks z, r, h; y = z *
  // a.
  void (*gru_start)(idx k, idx h, Rows proj, Rows za, Rows y);
  void (*gru_start_bwd)(idx k, idx h, Rows za, Rows dy, Rows dproj, bool acc);
  // A coupled LSTM, gates in blocks i, o, g, in place. i and g, and c = (1 - i) * c_prev + i * g; c_prev may be "not
  // wanted": zero state.
  void (*coupled_cell)(idx k, idx h, Rows gates, Rows c_prev, Rows c);
  // Then o, and y = o * tanh(c).
  void (*coupled_output)(idx k, idx h, Rows gates, Rows c, Rows y);
  // Block o of da, the gradient of the sums, and what flows into c; da may be the memory of the gates.
  void (*coupled_output_bwd)(idx k, idx h, Rows gates, Rows c, Rows dy, Rows dc, Rows da, Rows total);
  // Then blocks i and g of da, and dc_prev as acc says (not when not wanted).
  void (*coupled_cell_bwd)(idx k, idx h, Rows gates, Rows c_prev, Rows total, Rows da, Rows dc_prev, bool acc);

  // ---- random numbers: counter based, so that a value depends on (seed, i) alone, not on batching or threads ---
  void (*random_uniform)(idx n, std::uint64_t seed, float lo, float hi, float* y);  // [lo, hi)
  void (*random_normal)(idx n, std::uint64_t seed, float mean, float std, float* y);
  void (*random_mask)(idx n, std::uint64_t seed, float keep, float value,
                      float* y);  // value with probability keep, else 0

  // ---- optimizer rules: one fused pass over w, g and the state; see kernels/updates.h for the c[] of each ------
  void (*sgd)(const UpdateArgs&);
  void (*momentum)(const UpdateArgs&);
  void (*adagrad)(const UpdateArgs&);
  void (*adadelta)(const UpdateArgs&);
  void (*rmsprop)(const UpdateArgs&);
  void (*adam)(const UpdateArgs&);
  void (*amsgrad)(const UpdateArgs&);
  void (*eg)(const UpdateArgs&);

  // ---- small matrix products, column-major; for gemm.cc, which everybody else calls ------------------------------
  // C = alpha A B + add + beta C. A is m x k by columns (lda apart); a row of b, add (may be not wanted) and c is a
  // column of B, of what is added and of C. When beta is 1, rows of c may repeat.
  void (*gemm_cols)(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add,
                    float beta, const Rows& c);
  // The same with A^T: A is k x m by columns.
  void (*gemm_dots)(idx m, idx n, idx k, float alpha, const float* a, idx lda, const Rows& b, const Rows& add,
                    float beta, const Rows& c);
  // C = alpha * (sum over k rows of a's row times b's row transposed) + beta C; m floats a row of a, n a row of b.
  // What comes next is fetched meanwhile, as far as there is time.
  void (*gemm_outer)(idx m, idx n, idx k, float alpha, const Rows& a, const Rows& b, float beta, float* c, idx ldc,
                     const NextOuter& next);
};

// The table of this thread: the processor's, unless a backend has put its own in its place (UseKernels).
const Kernels& kernels();
inline void copy(idx n, const float* x, float* y) {
  kernels().copy_rows(1, n, Rows{const_cast<float*>(x), 0, nullptr}, Rows{y, 0, nullptr});
}
// The best that the processor runs.
const Kernels& host_kernels();
// For tests: the table of one instruction set, or null when the processor or the build lacks it.
const Kernels* kernels_for(const char* isa);

}  // namespace dnl
