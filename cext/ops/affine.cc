// Affine maps of vectors, as passes over the graph make them: K maps of the same T vectors, their results one behind
// the other. Map k is b_k + W_k1 x1 + ... + W_kT xT, the biases there or not; of the matrices that vector t meets the
// columns from columns[t] on take part.
//
// Sums of products are one map of several vectors (rewrite/rules/sum.cc), products with a concatenation one of its
// parts (concat.cc), gates that are written one by one several maps (join.cc). Each product goes over all members of
// the batch and all elements of a mini-batch; vectors are looked up, and their gradients placed, once for all maps.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/both_gradients.h"
#include "ops/columns.h"
#include "ops/transposed.h"

namespace dnl {
namespace {

// What Maps reads of a call or a shape rule's input.
struct Layout {
  int nargs;
  const Word* key;
};

// Arguments: the vectors, then for each map its bias, if there are any, and its matrices. Key words: how many vectors,
// the first column for each, and whether there are biases.
struct Maps {
  int terms, nargs, bias;
  const Word* key;

  template <class In>
  explicit Maps(const In& in)
      : terms(in.key[0].i), nargs(in.nargs), bias(in.key[1 + in.key[0].i].i != 0), key(in.key) {}
  int count() const { return (nargs - terms) / (terms + bias); }
  int matrix(int map, int t) const { return bias_of(map) + bias + t; }
  int bias_of(int map) const { return terms + map * (terms + bias); }
  int map_of(int arg) const { return (arg - terms) / (terms + bias); }
  // Which vector the argument is multiplied with; -1: it is a bias.
  int term_of(int arg) const { return (arg - terms) % (terms + bias) - bias; }
  idx column(int t) const { return key[1 + t].i; }
};

// The op's view of a call.
struct Affine : Maps {
  const Call& c;
  idx rows, per, n;  // of all maps; elements of a member's mini-batch; columns of the call

  explicit Affine(const Call& call)
      : Maps(call), c(call), rows(call.out_dim[0].rows()), per(call.out_dim[0].bd), n(call.members * per) {}
  idx size(int t) const { return c.arg_dim[t]->rows(); }
  Rows columns(const Rows& r, idx floats) const { return columns_of(c, r, floats, per, per); }
  Rows vectors(const Rows* of, int t) const { return columns(of[t], size(t)); }
  // The columns of a matrix, or of its gradient, that take part.
  float* part(const Rows* of, int arg, int t, idx m) const { return of[arg].base + column(t) * m; }
  // f(map, its rows of y, how many numbers a row has)
  template <class F>
  void each(const Rows& y, F f) const {
    idx at = 0;
    for (int k = 0; k < count(); ++k) {
      const idx m = c.arg_dim[matrix(k, 0)]->rows();
      f(k, count() == 1 ? y : Rows{y.base + at, y.stride, nullptr}, m);
      at += m;
    }
  }
};

ShapeOut shape(const ShapeIn& in) {
  in.need(in.key[0].i >= 1 && in.nargs > in.key[0].i, "takes vectors, a first column for each, and matrices");
  const Maps maps(in);
  in.need((in.nargs - maps.terms) % (maps.terms + maps.bias) == 0,
          "each map takes a bias, if any does, and a matrix per vector");
  const u32 batch = in.common_batch();
  u32 rows = 0;
  for (int t = 0; t < maps.terms; ++t) in.need(in[t].is_vector() && in[t].bd == batch, "takes vectors");
  for (int j = maps.terms; j < in.nargs; ++j) in.need(in[j].bd == 1, "a matrix or bias is no mini-batch");
  in.need(maps.count() == 1 || batch == 1, "several maps take no mini-batches");
  for (int k = 0; k < maps.count(); ++k) {
    const u32 m = in[maps.matrix(k, 0)].rows();
    for (int t = 0; t < maps.terms; ++t) {
      const Dim& w = in[maps.matrix(k, t)];
      in.need(w.nd <= 2 && w.rows() == m, "matrices of a map have as many rows");
      in.need(maps.column(t) >= 0 && static_cast<u64>(maps.column(t)) + in[t].rows() <= w.cols(),
              "a matrix has too few columns for its vector");
    }
    const Dim& b = in[maps.bias_of(k)];
    in.need(!maps.bias || (b.is_vector() && b.rows() == m), "a bias has as many rows as its matrices");
    rows += m;
  }
  return Dim({rows}, batch);
}

void forward(const Call& c) {
  const Affine a(c);
  a.each(a.columns(c.y[0], a.rows), [&](int k, const Rows& y, idx m) {
    for (int t = 0; t < a.terms; ++t) {
      const Rows bias = a.bias && t == 0 ? Rows{c.x[a.bias_of(k)].base, 0, nullptr} : Rows{};
      gemm_rows(false, m, a.n, a.size(t), a.part(c.x, a.matrix(k, t), t, m), m, a.vectors(c.x, t), bias, t > 0, y);
    }
  });
}

// ---- the gradients of several maps as one ------------------------------------------------------
//
// One product of many rows is faster than several of few: fewer tiles have rows to spare, and gradients are written
// once. Forward it was not, since the matrices have to be copied first.

constexpr int kMany = 64;  // members

bool vectors_as_one(const Affine& a) { return a.count() > 1 && a.c.transposes && a.c.of_signature >= kMany; }

// The transposes of the matrices of vector t one beside the other: {size of the vector, rows of all}.
const float* stacked_transposed(const Affine& a, int t) {
  constexpr std::uint64_t kStacked = std::uint64_t(1) << 63;  // not one matrix (transposed.h)
  const Call& c = a.c;
  const Transposes::Key key{c.x[a.matrix(0, t)].base,
                            kStacked | std::uint64_t(c.signature) << 8 | static_cast<unsigned>(t)};
  return c.transposes->get(key, transposed_size(a.rows, a.size(t)), [&](float* to) {
    a.each(c.y[0], [&](int k, const Rows&, idx m) {
      transpose_to(to, m, a.size(t), a.part(c.x, a.matrix(k, t), t, m), m);
      to += transposed_size(m, a.size(t));
    });
  });
}

// Are the gradients of all matrices of vector t wanted, and members enough for one product?
bool matrices_as_one(const Affine& a, int t) {
  bool all = a.count() > 1 && a.c.members >= kMany;
  for (int k = 0; k < a.count(); ++k) all &= a.c.dx[a.matrix(k, t)].wanted();
  return all;
}

void add_matrix_gradients(const Affine& a, int t) {
  const Call& c = a.c;
  const idx cols = a.size(t);
  float* sum = c.scratch->alloc(static_cast<std::size_t>(a.rows * cols));
  kernels().fill(a.rows * cols, 0.f, sum);
  gemm_outer(a.rows, cols, c.members, c.dy[0], c.x[t], sum, a.rows);
  a.each(Rows{sum, a.rows, nullptr}, [&](int k, const Rows& from, idx m) {
    kernels().add_rows(cols, m, from, Rows{a.part(c.dx, a.matrix(k, t), t, m), m, nullptr});
  });
}

// ---- backward ----------------------------------------------------------------------------------

void add_bias_gradient(const Affine& a, int map) {
  a.each(a.columns(a.c.dy[0], a.rows), [&](int k, const Rows& dy, idx m) {
    if (k == map) kernels().sum_rows(a.n, m, dy, a.c.dx[a.bias_of(k)].base, true);
  });
}

void backward(const Call& c) {
  const Affine a(c);
  const Rows all = a.columns(c.dy[0], a.rows);
  for (int t = 0; t < a.terms; ++t) {
    const Rows dx = c.dx[t].wanted() ? a.vectors(c.dx, t) : Rows{};
    if (dx.wanted() && vectors_as_one(a)) {
      const idx size = a.size(t);
      gemm_rows(false, size, a.n, a.rows, stacked_transposed(a, t), columns_apart(size), all, Rows{}, c.acc[t], dx);
      continue;
    }
    a.each(all, [&](int k, const Rows& dy, idx) {
      const int w = a.matrix(k, t);
      const bool acc = c.acc[t] || k > 0;
      if (c.dx[w].wanted())
        add_both_gradients(c, w, a.column(t), a.size(t), acc, {a.n, dy, a.vectors(c.x, t), dx}, nullptr);
      else if (dx.wanted())
        times_transposed_columns(c, w, a.column(t), a.size(t), a.n, dy, Rows{}, acc, dx);
    });
  }
  for (int k = 0; a.bias && k < a.count(); ++k)
    if (c.dx[a.bias_of(k)].wanted()) add_bias_gradient(a, k);
}

void backward_shared(const Call& c, int wrt) {
  const Affine a(c);
  const int t = a.term_of(wrt), map = a.map_of(wrt);
  if (t < 0) return add_bias_gradient(a, map);
  if (matrices_as_one(a, t)) {
    if (map == 0) add_matrix_gradients(a, t);  // of all maps
    return;
  }
  a.each(a.columns(c.dy[0], a.rows), [&](int k, const Rows& dy, idx m) {
    if (k == map) gemm_outer(m, a.size(t), a.n, dy, a.vectors(c.x, t), a.part(c.dx, wrt, t, m), m);
  });
}

// Matrices of one vector are formed as one.
int formed_with(int nargs, const Word* key, int wrt) {
  const Maps maps(Layout{nargs, key});
  const int t = maps.term_of(wrt);
  return t < 0 ? wrt : maps.matrix(0, t);
}

// matmul + matmul; of parts matmul(concatenate)
std::string text_of_one(int nargs, const Word* key, bool) {
  const Maps maps(Layout{nargs, key});
  for (int t = 0; t < maps.terms; ++t)
    if (maps.column(t)) return maps.bias ? "affine_transform(concatenate)" : "matmul(concatenate)";
  if (maps.bias) return "affine_transform";
  std::string text = "matmul";
  for (int t = 1; t < maps.terms; ++t) text += " + matmul";
  return text;
}

// affine_transform x 4
std::string text_of_several(int nargs, const Word* key, bool) {
  const Maps maps(Layout{nargs, key});
  return (maps.bias ? "affine_transform x " : "matmul x ") + std::to_string(maps.count());
}

// One map and several are the same, but for who reads them and when gradients of matrices are formed.
void set_affine(OpDef& op) {
  op.args = {each("xs", Batch::Stack, Access::Near), each("weights", Batch::Share)};
  op.two_lists = true;
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
  op.backward_shared = backward_shared;
  op.in_kernels = true;
}

const OpId affine_id = register_op([](OpDef& op) {
  op.signature = "_affine(xs: exprs, weights: exprs, columns: ints, bias: bool)";
  op.doc =
      "b + W1 * x1 + W2 * x2 + ..., or without b: xs [x1, x2, ...], weights [b, W1, W2, ...]; of each matrix the "
      "columns "
      "from columns[i] on take part. xi {ki}, b {m}, Wi {m,k}, columns[i] + ki <= k -> {m}.";
  set_affine(op);
  op.text = text_of_one;
  op.composed = true;
  op.family = "(affine maps)";
  op.shared = Shared::EitherWay;
  op.joinable = true;
});

const OpId affines_id = register_op([](OpDef& op) {
  op.signature = "_affines(xs: exprs, weights: exprs, columns: ints, bias: bool)";
  op.doc =
      "Affine maps of the same vectors, one behind the other: xs [x1, x2, ...], weights [b1, V1, W1, ..., b2, V2, W2, "
      "...], or without the b's -> {m1 + m2 + ...}. Columns as in _affine.";
  set_affine(op);
  op.text = text_of_several;
  op.composed = true;
  op.family = "(affine maps)";
  op.formed_with = formed_with;
  op.in_parts = true;
});

}  // namespace
}  // namespace dnl
