// Several affine maps of the same inputs as one node: what rewrite/rules/join.cc makes of gates that are written one by
// one.
//
// The results lie one behind the other. Each map is a product over all members of the batch; inputs are looked up, and
// their gradients placed, once for all maps.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/transposed.h"

namespace dnl {
namespace {

// Arguments: K inputs, then for each map its bias, if there are any, and its K matrices. Key word: are there biases?
template <int K>
struct Maps {
  int nargs, bias;

  template <class In>
  explicit Maps(const In& in) : nargs(in.nargs), bias(in.key[0].i != 0) {}
  int count() const { return (nargs - K) / (K + bias); }
  int matrix(int map, int x) const { return K + map * (K + bias) + bias + x; }
  int bias_of(int map) const { return K + map * (K + bias); }
  int map_of(int arg) const { return (arg - K) / (K + bias); }
  // Which input the argument is multiplied with; -1: it is a bias.
  int input_of(int arg) const { return (arg - K) % (K + bias) - bias; }
};

template <int K>
ShapeOut affines_shape(const ShapeIn& in) {
  const Maps<K> maps(in);
  in.need(maps.count() >= 1 && (in.nargs - K) % (K + maps.bias) == 0,
          "each map takes a bias, if any does, and a matrix per input");
  u32 rows = 0;
  for (int j = 0; j < in.nargs; ++j) in.need(in[j].bd == 1, "takes no mini-batches");
  for (int x = 0; x < K; ++x) in.need(in[x].is_vector(), "inputs are vectors");
  for (int g = 0; g < maps.count(); ++g) {
    const u32 m = in[maps.matrix(g, 0)].rows();
    for (int x = 0; x < K; ++x) {
      const Dim& w = in[maps.matrix(g, x)];
      in.need(w.nd <= 2 && w.rows() == m && w.cols() == in[x].rows(),
              "columns of a matrix must equal rows of its input");
    }
    const Dim& b = in[maps.bias ? maps.bias_of(g) : 0];
    in.need(!maps.bias || (b.is_vector() && b.rows() == m), "a bias has as many rows as its matrices");
    rows += m;
  }
  return Dim{rows};
}

// f(map, its rows of y, how many numbers a row has)
template <int K, class F>
void each_map(const Call& c, const Rows& y, F f) {
  const Maps<K> maps(c);
  idx at = 0;
  for (int g = 0; g < maps.count(); ++g) {
    const idx m = c.arg_dim[maps.matrix(g, 0)]->rows();
    f(g, Rows{y.base + at, y.stride, nullptr}, m);
    at += m;
  }
}

// ---- the gradients of all maps as one -----------------------------------------------------------
//
// One product of many rows is faster than several of few: fewer tiles have rows to spare, and gradients are written
// once. Forward it was not, since the matrices have to be copied first.

constexpr int kMany = 64;  // members

bool as_one(const Call& c) { return c.transposes && c.of_signature >= kMany; }

// The transposes of the matrices of input x one beside the other: {size of x, rows of all}.
template <int K>
const float* stacked_transposed(const Call& c, int x, idx rows) {
  constexpr std::uint64_t kStacked = std::uint64_t(1) << 63;  // not one matrix (transposed.h)
  const Maps<K> maps(c);
  const idx cols = static_cast<idx>(c.arg_size(x));
  const Transposes::Key key{c.x[maps.matrix(0, x)].base,
                            kStacked | std::uint64_t(c.signature) << 8 | static_cast<unsigned>(x)};
  return c.transposes->get(key, transposed_size(rows, cols), [&](float* to) {
    each_map<K>(c, c.y[0], [&](int g, const Rows&, idx m) {
      transpose_to(to, m, cols, c.x[maps.matrix(g, x)].base, m);
      to += transposed_size(m, cols);
    });
  });
}

// ---- the op -------------------------------------------------------------------------------------

template <int K>
void affines_forward(const Call& c) {
  const Maps<K> maps(c);
  each_map<K>(c, c.y[0], [&](int g, const Rows& y, idx m) {
    for (int x = 0; x < K; ++x) {
      const Rows bias = maps.bias && x == 0 ? Rows{c.x[maps.bias_of(g)].base, 0, nullptr} : Rows{};
      gemm_rows(false, m, c.members, static_cast<idx>(c.arg_size(x)), c.x[maps.matrix(g, x)].base, m, c.x[x], bias,
                x > 0, y);
    }
  });
}

template <int K>
void affines_backward(const Call& c) {
  const Maps<K> maps(c);
  const idx rows = static_cast<idx>(c.out_size());
  for (int x = 0; x < K; ++x) {
    if (!c.dx[x].wanted()) continue;
    const idx cols = static_cast<idx>(c.arg_size(x));
    if (as_one(c)) {
      const float* const t = stacked_transposed<K>(c, x, rows);
      gemm_rows(false, cols, c.members, rows, t, columns_apart(cols), c.dy[0], Rows{}, c.acc[x], c.dx[x]);
      continue;
    }
    each_map<K>(c, c.dy[0], [&](int g, const Rows& dy, idx) {
      times_transposed(c, maps.matrix(g, x), c.members, dy, Rows{}, c.acc[x] || g > 0, c.dx[x]);
    });
  }
}

// Are the gradients of all matrices of input x wanted, and members enough for one product?
template <int K>
bool matrices_as_one(const Call& c, int x) {
  const Maps<K> maps(c);
  bool all = c.members >= kMany;
  for (int g = 0; g < maps.count(); ++g) all &= c.dx[maps.matrix(g, x)].wanted();
  return all;
}

template <int K>
void add_matrix_gradients(const Call& c, int x) {
  const Maps<K> maps(c);
  const idx rows = static_cast<idx>(c.out_size()), cols = static_cast<idx>(c.arg_size(x));
  float* sum = c.scratch->alloc(static_cast<std::size_t>(rows * cols));
  kernels().fill(rows * cols, 0.f, sum);
  gemm_outer(rows, cols, c.members, c.dy[0], c.x[x], sum, rows);
  each_map<K>(c, Rows{sum, rows, nullptr}, [&](int g, const Rows& from, idx m) {
    kernels().add_rows(cols, m, from, Rows{c.dx[maps.matrix(g, x)].base, m, nullptr});
  });
}

template <int K>
void affines_backward_shared(const Call& c, int wrt) {
  const Maps<K> maps(c);
  const int x = maps.input_of(wrt);
  if (x >= 0 && matrices_as_one<K>(c, x)) {
    if (maps.map_of(wrt) == 0) add_matrix_gradients<K>(c, x);  // of all maps
    return;
  }
  each_map<K>(c, c.dy[0], [&](int g, const Rows& dy, idx m) {
    if (g != maps.map_of(wrt)) return;
    if (x < 0)
      kernels().sum_rows(c.members, m, dy, c.dx[wrt].base, true);
    else
      gemm_outer(m, static_cast<idx>(c.arg_size(x)), c.members, dy, c.x[x], c.dx[wrt].base, m);
  });
}

// What Maps reads of a call.
struct Layout {
  int nargs;
  const Word* key;
};

// Matrices of one input are formed as one.
template <int K>
int affines_together(int nargs, const Word* key, int wrt) {
  const Maps<K> maps(Layout{nargs, key});
  const int x = maps.input_of(wrt);
  return x < 0 ? wrt : maps.matrix(0, x);
}

// affine_transform x 4
template <int K>
std::string affines_text(int nargs, const Word* key, bool) {
  return (key[0].i ? "affine_transform x " : "matmul x ") + std::to_string(Maps<K>(Layout{nargs, key}).count());
}

const OpId affines1_id = register_op([](OpDef& op) {
  op.signature = "_affines1(x: expr, weights: exprs, bias: bool)";
  op.doc =
      "Affine maps of one vector, one behind the other: [b1, W1, b2, W2, ...], or without the b's -> {m1 + m2 + "
      "...}.";
  op.args = {{"x", Batch::Stack, Access::Near}, each("weights", Batch::Share)};
  op.shape = affines_shape<1>;
  op.forward = affines_forward<1>;
  op.backward = affines_backward<1>;
  op.backward_shared = affines_backward_shared<1>;
  op.text = affines_text<1>;
  op.in_parts = true;
  op.together = affines_together<1>;
});

const OpId affines2_id = register_op([](OpDef& op) {
  op.signature = "_affines2(x1: expr, x2: expr, weights: exprs, bias: bool)";
  op.doc =
      "Affine maps of two vectors, one behind the other: [b1, V1, W1, b2, V2, W2, ...], or without the b's -> {m1 + "
      "m2 + ...}.";
  op.args = {{"x1", Batch::Stack, Access::Near}, {"x2", Batch::Stack, Access::Near}, each("weights", Batch::Share)};
  op.shape = affines_shape<2>;
  op.forward = affines_forward<2>;
  op.backward = affines_backward<2>;
  op.backward_shared = affines_backward_shared<2>;
  op.text = affines_text<2>;
  op.in_parts = true;
  op.together = affines_together<2>;
});

const OpId affines3_id = register_op([](OpDef& op) {
  op.signature = "_affines3(x1: expr, x2: expr, x3: expr, weights: exprs, bias: bool)";
  op.doc =
      "Affine maps of three vectors, one behind the other: [b1, U1, V1, W1, ...], or without the b's -> {m1 + m2 + "
      "...}.";
  op.args = {{"x1", Batch::Stack, Access::Near},
             {"x2", Batch::Stack, Access::Near},
             {"x3", Batch::Stack, Access::Near},
             each("weights", Batch::Share)};
  op.shape = affines_shape<3>;
  op.forward = affines_forward<3>;
  op.backward = affines_backward<3>;
  op.backward_shared = affines_backward_shared<3>;
  op.text = affines_text<3>;
  op.in_parts = true;
  op.together = affines_together<3>;
});

}  // namespace
}  // namespace dnl
