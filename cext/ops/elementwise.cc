// Elementwise ops: an entry for every formula of kernels/formulas.h, with broadcasting for those of two arguments.
//
// Broadcasting aligns dims from the first; a dim of 1 (or a missing one) goes with any, in both directions, and so does
// a batch of 1. Attributes of formulas are per member.
#include <algorithm>

#include "kernels/formula_info.h"
#include "kernels/kernels.h"
#include "op/op.h"

namespace dnl {
namespace {

const float* attributes(const Call& c, int m) {
  return c.member ? reinterpret_cast<const float*>(c.member[m]) : nullptr;
}

// The kernel of a formula. Its number, the same in every table, is found by name once.
template <class Kernel>
idx number_of(const Kernel* all, int n, const char* name) {
  return std::find_if(all, all + n, [&](const Kernel& k) { return !std::strcmp(k.name, name); }) - all;
}
template <class S>
const UnaryKernel& unary_kernel() {
  static const idx number = number_of(kernels().unary, kernels().n_unary, S::info.name);
  return kernels().unary[number];
}
template <class S>
const BinaryKernel& binary_kernel() {
  static const idx number = number_of(kernels().binary, kernels().n_binary, S::info.name);
  return kernels().binary[number];
}

// ---- one argument ------------------------------------------------------------------------------------------------

template <class S>
void unary_forward(const Call& c) {
  const UnaryKernel& k = unary_kernel<S>();
  const idx n = c.out_size();
  if (c.op->attrs.empty() && c.x[0].packed(n)) return k.fwd(n * c.members, c.x[0].base, c.y[0].base, nullptr);
  for (int m = 0; m < c.members; ++m) k.fwd(n, c.x[0][m], c.y[0][m], attributes(c, m));
}

template <class S>
void unary_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const UnaryKernel& k = unary_kernel<S>();
  const idx n = c.out_size();
  if (c.op->attrs.empty() && c.x[0].packed(n) && c.dx[0].packed(n))
    return k.bwd(n * c.members, c.x[0].base, c.y[0].base, c.dy[0].base, c.dx[0].base, nullptr, c.acc[0]);
  for (int m = 0; m < c.members; ++m)
    k.bwd(n, c.x[0][m], c.y[0][m], c.dy[0][m], c.dx[0][m], attributes(c, m), c.acc[0]);
}

// ---- two arguments -----------------------------------------------------------------------------------------------

// How two shapes are walked together: inner runs of `n` numbers with steps 0 or 1, and outer dims by odometer.
struct Walk {
  idx n = 1, su = 1, sv = 1;
  int outer = 0;
  idx count[kMaxDims + 1], step_u[kMaxDims + 1], step_v[kMaxDims + 1];
  bool full_u, full_v;  // the operand has every element of the result

  Walk(const Dim& u, const Dim& v, const Dim& y) {
    full_u = u.size() == y.size();
    full_v = v.size() == y.size();
    idx at_u = 1, at_v = 1;
    bool inner = true;
    for (u32 i = 0; i <= y.nd; ++i) {  // the batch is the last dim
      const idx ny = i < y.nd ? y.d[i] : y.bd, nu = i < y.nd ? u[i] : u.bd, nv = i < y.nd ? v[i] : v.bd;
      if (ny == 1) continue;
      const idx tu = nu == 1 ? 0 : 1, tv = nv == 1 ? 0 : 1;
      if (inner && (n == 1 || (tu == su && tv == sv))) {
        su = tu;
        sv = tv;
        n *= ny;
      } else {
        inner = false;
        count[outer] = ny;
        step_u[outer] = tu * at_u;
        step_v[outer] = tv * at_v;
        ++outer;
      }
      at_u *= nu;
      at_v *= nv;
    }
  }
  // f(offset in u, offset in v, offset in y) for every run.
  template <class F>
  void each(F f) const {
    idx at[kMaxDims + 1] = {0};
    idx u = 0, v = 0, y = 0;
    for (;;) {
      f(u, v, y);
      y += n;
      int i = 0;
      for (; i < outer; ++i) {
        u += step_u[i];
        v += step_v[i];
        if (++at[i] < count[i]) break;
        u -= step_u[i] * count[i];
        v -= step_v[i] * count[i];
        at[i] = 0;
      }
      if (i == outer) return;
    }
  }
};

ShapeOut binary_shape(const ShapeIn& in) {
  const Dim &u = in[0], &v = in[1];
  Dim y;
  y.nd = std::max(u.nd, v.nd);
  for (u32 i = 0; i < y.nd; ++i) {
    in.need(u[i] == v[i] || u[i] == 1 || v[i] == 1,
            "dims must be equal or 1 (they are aligned from the first dim, column-major)");
    y.d[i] = std::max(u[i], v[i]);
  }
  y.bd = in.common_batch();
  return y;
}

template <class S>
void binary_forward(const Call& c) {
  const BinaryKernel& k = binary_kernel<S>();
  const Walk w(*c.arg_dim[0], *c.arg_dim[1], c.out_dim[0]);
  const idx n = c.out_size();
  if (w.full_u && w.full_v && c.op->attrs.empty() && c.x[0].packed(n) && c.x[1].packed(n))
    return k.fwd(n * c.members, c.x[0].base, 1, c.x[1].base, 1, c.y[0].base, nullptr);
  for (int m = 0; m < c.members; ++m) {
    float *u = c.x[0][m], *v = c.x[1][m], *y = c.y[0][m];
    const float* a = attributes(c, m);
    w.each([&](idx at_u, idx at_v, idx at_y) { k.fwd(w.n, u + at_u, w.su, v + at_v, w.sv, y + at_y, a); });
  }
}

template <class S>
void binary_backward(const Call& c) {
  const BinaryKernel& k = binary_kernel<S>();
  const Walk w(*c.arg_dim[0], *c.arg_dim[1], c.out_dim[0]);
  const idx n = c.out_size();
  const bool want_u = c.dx[0].wanted(), want_v = c.dx[1].wanted();
  auto fits = [&](int j) { return !c.dx[j].wanted() || c.dx[j].packed(n); };
  if (w.full_u && w.full_v && c.op->attrs.empty() && c.x[0].packed(n) && c.x[1].packed(n) && fits(0) && fits(1))
    return k.bwd(n * c.members, c.x[0].base, 1, c.x[1].base, 1, c.y[0].base, c.dy[0].base, c.dx[0].base, c.acc[0],
                 c.dx[1].base, c.acc[1], nullptr);
  for (int m = 0; m < c.members; ++m) {
    float *u = c.x[0][m], *v = c.x[1][m], *y = c.y[0][m], *dy = c.dy[0][m];
    float *du = want_u ? c.dx[0][m] : nullptr, *dv = want_v ? c.dx[1][m] : nullptr;
    const float* a = attributes(c, m);
    // A repeated operand collects from several runs, so it starts from zero.
    if (want_u && !w.full_u && !c.acc[0]) kernels().fill(c.arg_size(0), 0.f, du);
    if (want_v && !w.full_v && !c.acc[1]) kernels().fill(c.arg_size(1), 0.f, dv);
    w.each([&](idx at_u, idx at_v, idx at_y) {
      k.bwd(w.n, u + at_u, w.su, v + at_v, w.sv, y + at_y, dy + at_y, du ? du + at_u : nullptr, c.acc[0] || !w.full_u,
            dv ? dv + at_v : nullptr, c.acc[1] || !w.full_v, a);
    });
  }
}

// ---- the entries ---------------------------------------------------------------------------------------------------

// Lives as long as the process: the op entry keeps the pointers.
const char* signature_of(const FormulaInfo& f, bool binary) {
  std::string s = std::string(f.name) + (binary ? "(x: expr, y: expr" : "(x: expr");
  for (int i = 0; i < f.n_attr(); ++i) s += std::string(", ") + f.attr[i].name + ": float*";
  return (new std::string(s + ")"))->c_str();
}

// Linear functions that programs put between their losses and backward().
bool joins(const char* name) {
  for (const char* linear : {"add", "sub", "scale", "add_const", "const_minus", "negate"})
    if (!std::strcmp(name, linear)) return true;
  return false;
}

// Formulas are registered in the order of their numbers.
u8 next_unary = 0, next_binary = 0;

// An internal formula that no function stands for is an operator, and its documentation is how that is written.
void describe(OpDef& op, const FormulaInfo& info, bool binary) {
  op.signature = signature_of(info, binary);
  op.doc = info.doc;
  op.function = info.function;
  if (info.internal && !info.function) op.written = info.doc;
}

template <class S>
OpId register_unary() {
  return register_op([](OpDef& op) {
    describe(op, S::info, false);
    op.args = {{"x"}};
    op.shape = [](const ShapeIn& in) -> ShapeOut { return in[0]; };
    op.forward = unary_forward<S>;
    op.backward = unary_backward<S>;
    op.joins = joins(S::info.name);
    op.in_kernels = true;
    op.formula = Formula::Unary;
    op.formula_id = next_unary++;
    op.reads_value_only = S::info.reads == kReadsY;
  });
}

template <class S>
OpId register_binary() {
  return register_op([](OpDef& op) {
    describe(op, S::info, true);
    op.args = {{"x"}, {"y"}};
    op.shape = binary_shape;
    op.forward = binary_forward<S>;
    op.backward = binary_backward<S>;
    op.joins = joins(S::info.name);
    op.in_kernels = true;
    op.formula = Formula::Binary;
    op.formula_id = next_binary++;
  });
}

// The formulas' code is not instantiated here: only their names and docs are read.
#define DNL_UNARY(S) const OpId S##_id = register_unary<S>();
#define DNL_BINARY(S) const OpId S##_id = register_binary<S>();
#include "kernels/formulas.h"

}  // namespace
}  // namespace dnl
