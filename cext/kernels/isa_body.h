// The kernels of one instruction set, all of struct Kernels, written on the vector wrapper of a simd_*.h.
//
// Each isa_*.cc includes its simd_*.h and then this file inside an unnamed namespace. Nothing here may have external
// linkage and nothing from the C++ library that is a template or inline may be called: the linker would keep one copy
// of it for all files, perhaps the one compiled for a processor that is not there. C functions are fine.
// The body_*.h are parts of this file, by family.

#define DNL_INL_MEMBER inline __attribute__((always_inline))
#define DNL_LAMBDA __attribute__((always_inline))

#include "kernels/mathfn.h"

constexpr idx kBlock = 256 * F::W;  // long sums: floats within a block (64 to a running sum), double over blocks

DNL_INL F load_all(const float* p) { return load(p); }
DNL_INL void store_all(float* p, F x) { store(p, x); }
// How a loop body reads and writes its lanes: all of them, or the first n of the last vector.
struct Whole {
  DNL_INL_MEMBER F load(const float* p) const { return load_all(p); }
  DNL_INL_MEMBER void store(float* p, F x) const { store_all(p, x); }
  DNL_INL_MEMBER F only(F x, float = 0.0f) const { return x; }
};
struct Part {
  idx n;
  DNL_INL_MEMBER F load(const float* p) const { return load_n(p, n); }
  DNL_INL_MEMBER void store(float* p, F x) const { store_n(p, x, n); }
  // Lanes that are not there become `other`.
  DNL_INL_MEMBER F only(F x, float other = 0.0f) const {
    return select(to_float(iota()) < F(static_cast<float>(n)), x, F(other));
  }
};
DNL_INL Whole whole() { return {}; }
DNL_INL Part part(idx n) { return {n}; }

// fn(i, lanes) for i = 0, W, 2W, ..: the same code on whole vectors and on the last, partial one, so that the result
// for a number does not depend on where it stands.
template <class Fn>
DNL_INL void for_lanes(idx n, Fn fn) {
  idx i = 0;
  for (; i + F::W <= n; i += F::W) fn(i, whole());
  if (i < n) fn(i, part(n - i));
}

// Rows without its member functions, which are inline and so not ours to instantiate here (see above).
struct Row {
  float* base;
  std::ptrdiff_t stride;
  float* const* ptr;
  DNL_INL_MEMBER Row(const Rows& r) : base(r.base), stride(r.stride), ptr(r.ptr) {}
  DNL_INL_MEMBER Row(float* first, std::ptrdiff_t step) : base(first), stride(step), ptr(nullptr) {}
  DNL_INL_MEMBER float* operator[](idx m) const { return ptr ? ptr[m] : base + m * stride; }
  DNL_INL_MEMBER bool wanted() const { return ptr || base; }
  DNL_INL_MEMBER bool packed(idx length) const { return !ptr && stride == length; }
};

// Asks for n floats that are read (or written) soon: memory that lies elsewhere for every call takes the processor by
// surprise at its beginning.
DNL_INL void fetch(const float* p, idx n) {
  for (idx i = 0; i < n; i += 16) DNL_FETCH(p + i);
}
DNL_INL void fetch_to_write(float* p, idx n) {
  for (idx i = 0; i < n; i += 16) DNL_FETCH_TO_WRITE(p + i);
}

#include "kernels/body_elementwise.h"
#include "kernels/body_basic.h"
#include "kernels/body_softmax.h"
#include "kernels/body_attention.h"
#include "kernels/body_cells.h"
#include "kernels/body_tree_gru.h"
#include "kernels/body_cell_parts.h"
#include "kernels/body_random_update.h"
#include "kernels/body_gemm.h"

// By name: a table that is filled by place could have two kernels of one type swapped.
static constexpr void add_cells(Kernels& k) {
  k.lstm_fwd = lstm_fwd;
  k.lstm_bwd = lstm_bwd;
  k.gru_zr_fwd = gru_zr_fwd;
  k.gru_out_fwd = gru_out_fwd;
  k.gru_out_bwd = gru_out_bwd;
  k.gru_zr_bwd = gru_zr_bwd;
  k.tree_lstm_fwd = tree_lstm_fwd;
  k.tree_lstm_bwd = tree_lstm_bwd;
  k.lstm_gates = lstm_gates;
  k.lstm_gates_bwd = lstm_gates_bwd;
  k.lstm_cell = lstm_cell;
  k.lstm_cell_bwd = lstm_cell_bwd;
  k.lstm_output = lstm_output;
  k.lstm_output_bwd = lstm_output_bwd;
  k.gru_start = gru_start;
  k.gru_start_bwd = gru_start_bwd;
  k.coupled_cell = coupled_cell;
  k.coupled_output = coupled_output;
  k.coupled_output_bwd = coupled_output_bwd;
  k.coupled_cell_bwd = coupled_cell_bwd;
}
static constexpr Kernels all_kernels() {
  Kernels k{};
  k.isa = DNL_ISA_NAME;
  k.unary = formulas::UnaryTable<formulas::kUnaryCount>::rows;
  k.n_unary = formulas::kUnaryCount;
  k.binary = formulas::BinaryTable<formulas::kBinaryCount>::rows;
  k.n_binary = formulas::kBinaryCount;
  // moving and adding
  k.fill = fill;
  k.add = add;
  k.axpy = axpy;
  k.scale = scale;
  k.scale_to = scale_to;
  k.copy_rows = copy_rows;
  k.add_rows = add_rows;
  k.sum_rows = sum_rows;
  k.scale_rows = scale_rows;
  k.transpose = transpose;
  k.transpose_strided = transpose_strided;
  // reductions
  k.sum = sum;
  k.sum_squares = sum_squares;
  k.dot = dot;
  k.max = max;
  k.argmax = argmax;
  k.all_finite = all_finite;
  // softmax family, layer norm
  k.logsumexp = logsumexp;
  k.exp_below = exp_below;
  k.softmax = softmax;
  k.softmax_bwd = softmax_bwd;
  k.log_softmax = log_softmax;
  k.log_softmax_bwd = log_softmax_bwd;
  k.exp_shifted = exp_shifted;
  k.layer_norm = layer_norm;
  k.layer_norm_bwd = layer_norm_bwd;
  // attention
  k.attention_scores = attention_scores;
  k.attention_scores_bwd = attention_scores_bwd;
  add_cells(k);
  // random numbers
  k.random_uniform = random_uniform;
  k.random_normal = random_normal;
  k.random_mask = random_mask;
  // optimizer rules
  k.sgd = update_sgd;
  k.momentum = update_momentum;
  k.adagrad = update_adagrad;
  k.adadelta = update_adadelta;
  k.rmsprop = update_rmsprop;
  k.adam = update_adam;
  k.amsgrad = update_amsgrad;
  k.eg = update_eg;
  // small products
  k.gemm_cols = gemm_cols;
  k.gemm_dots = gemm_dots;
  k.gemm_outer = gemm_outer;
  return k;
}
static constexpr Kernels kTable = all_kernels();
