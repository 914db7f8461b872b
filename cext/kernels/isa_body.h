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
#include "kernels/body_random_update.h"
#include "kernels/body_gemm.h"

static constexpr Kernels kTable = {
    DNL_ISA_NAME, formulas::UnaryTable<formulas::kUnaryCount>::rows, formulas::kUnaryCount,
    formulas::BinaryTable<formulas::kBinaryCount>::rows, formulas::kBinaryCount,
    // moving and adding
    fill, add, axpy, scale, scale_to, copy_rows, add_rows, sum_rows, scale_rows, transpose, transpose_strided,
    // reductions
    sum, sum_squares, dot, max, argmax, all_finite,
    // softmax family, layer norm
    logsumexp, exp_below, softmax, softmax_bwd, log_softmax, log_softmax_bwd, exp_shifted, layer_norm, layer_norm_bwd,
    // attention
    attention_scores, attention_scores_bwd,
    // cells
    lstm_fwd, lstm_bwd, gru_zr_fwd, gru_out_fwd, gru_out_bwd, gru_zr_bwd, tree_lstm_fwd, tree_lstm_bwd,
    // random numbers
    random_uniform, random_normal, random_mask,
    // optimizer rules
    update_sgd, update_momentum, update_adagrad, update_adadelta, update_rmsprop, update_adam, update_amsgrad,
    update_eg,
    // small products
    gemm_cols, gemm_dots, gemm_outer};
