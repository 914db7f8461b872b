// Choosing by lists of indices, and products of two vectors: rows that the host lists are copied or added.
#include "backends/cuda/ops.h"
#include "base/walk.h"

namespace dnl::cuda {
namespace {

idx wrapped(i32 i, idx n) { return i < 0 ? i + n : i; }

// Pieces of x and of y that belong together, of n numbers each.
struct Pairs {
  idx n;
  Vec<float*> x, y;
  void add(float* at_x, float* at_y) {
    x.push_back(at_x);
    y.push_back(at_y);
  }
  idx count() const { return static_cast<idx>(x.size()); }
};
using MakePairs = Pairs (*)(const Call&, const Rows& x, const Rows& y);

template <MakePairs kPairs>
void pick_forward(const Call& c) {
  const Pairs p = kPairs(c, c.x[0], c.y[0]);
  table().copy_rows(p.count(), p.n, Rows{nullptr, 0, p.x.data()}, Rows{nullptr, 0, p.y.data()});
}
template <MakePairs kPairs>
void pick_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  if (!c.acc[0]) fill_rows(c.members, static_cast<idx>(c.arg_size(0)), 0.0f, c.dx[0]);
  const Pairs p = kPairs(c, c.dx[0], c.dy[0]);
  table().add_rows(p.count(), p.n, Rows{nullptr, 0, p.y.data()}, Rows{nullptr, 0, p.x.data()});
}

// Key words: dim, number of indices. Element indices[e] of batch element e.
Pairs of_batch(const Call& c, const Rows& x, const Rows& y) {
  const dnl::Axis a(*c.arg_dim[0], c.key[0].u);
  Pairs p{a.inner, {}, {}};
  const idx batch = c.out_dim[0].bd, xb = c.arg_dim[0]->bd, outer = a.outer / xb, n = c.key[1].i;
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < batch; ++e) {
      const idx at = wrapped(c.member[m][1 + (n == 1 ? 0 : e)].i, a.n), item = xb == 1 ? 0 : e;
      for (idx o = 0; o < outer; ++o)
        p.add(x[m] + ((item * outer + o) * a.n + at) * a.inner, y[m] + (e * outer + o) * a.inner);
    }
  return p;
}
const DeviceOpEntry pick_batch("_pick_batch", {pick_forward<of_batch>, pick_backward<of_batch>});

// Key words: dim, number of indices.
Pairs selected(const Call& c, const Rows& x, const Rows& y) {
  const dnl::Axis a(*c.arg_dim[0], c.key[0].u);
  Pairs p{a.inner, {}, {}};
  const idx n = c.key[1].i;
  for (int m = 0; m < c.members; ++m)
    for (idx o = 0; o < a.outer; ++o)
      for (idx k = 0; k < n; ++k)
        p.add(x[m] + (o * a.n + wrapped(c.member[m][1 + k].i, a.n)) * a.inner, y[m] + (o * n + k) * a.inner);
  return p;
}
const DeviceOpEntry select("_select", {pick_forward<selected>, pick_backward<selected>});

// Key word: number of indices.
Pairs elements(const Call& c, const Rows& x, const Rows& y) {
  const idx one = static_cast<idx>(c.arg_dim[0]->batch_size()), b = c.arg_dim[0]->bd;
  Pairs p{one, {}, {}};
  for (int m = 0; m < c.members; ++m)
    for (idx k = 0; k < c.key[0].i; ++k) p.add(x[m] + wrapped(c.member[m][1 + k].i, b) * one, y[m] + k * one);
  return p;
}
const DeviceOpEntry pick_batch_elems("_pick_batch_elems", {pick_forward<elements>, pick_backward<elements>});

// ---- dot_product ---------------------------------------------------------------------------------------------------

// Sums of products: u, v by member and element.
device::TwoVectors dot_of(const Call& c) {
  device::TwoVectors r{};
  r.u = read_argument(c, 0);
  r.v = read_argument(c, 1);
  r.members = c.members;
  r.batch = c.out_dim[0].bd;
  r.n = static_cast<idx>(c.arg_dim[0]->batch_size());
  r.step_u = step_of(c, 0);
  r.step_v = step_of(c, 1);
  return r;
}
// Gradients of both arguments, where they are wanted. `to` is made before r: it may record something.
void give_both(const Call& c, const Gradients& to, device::TwoVectors r, Kernel kernel, idx threads) {
  r.dy = read_gradient(c, 0);
  r.du = to.wanted(0) ? to.write(0) : device::Rows{};
  r.dv = to.wanted(1) ? to.write(1) : device::Rows{};
  r.acc_u = to.acc(0);
  r.acc_v = to.acc(1);
  recorder().add(kernel, r, threads);
  to.done();
}
const DeviceOpEntry dot_product("dot_product", {[](const Call& c) {
                                                  device::TwoVectors r = dot_of(c);
                                                  r.y = write_output(c, 0);
                                                  recorder().add(Kernel::dot, r, r.members * r.batch * 128);
                                                },
                                                [](const Call& c) {
                                                  const Gradients to(c);
                                                  const device::TwoVectors r = dot_of(c);
                                                  give_both(c, to, r, Kernel::dot_back, r.members * r.n);
                                                }});

// ---- circular convolution and correlation, softmax with bounds: the same two vectors -------------------------------

template <bool kCorrelation>
DeviceOp circular_op() {
  return {[](const Call& c) {
            device::TwoVectors r = dot_of(c);
            r.correlation = kCorrelation;
            r.y = write_output(c, 0);
            recorder().add(Kernel::circular, r, r.members * r.batch * r.n);
          },
          [](const Call& c) {
            const Gradients to(c);
            device::TwoVectors r = dot_of(c);
            r.correlation = kCorrelation;
            give_both(c, to, r, Kernel::circular_back, r.members * r.n);
          }};
}
const DeviceOpEntry circ_conv("circ_conv", circular_op<false>());
const DeviceOpEntry circ_corr("circ_corr", circular_op<true>());

const DeviceOpEntry constrained_softmax("constrained_softmax",
                                        {[](const Call& c) {
                                           device::TwoVectors r = dot_of(c);
                                           r.y = write_output(c, 0);
                                           recorder().add(Kernel::bounded_softmax, r, r.members * r.batch);
                                         },
                                         [](const Call& c) {
                                           const Gradients to(c);
                                           device::TwoVectors r = dot_of(c);
                                           r.y = read_output(c, 0);
                                           give_both(c, to, r, Kernel::bounded_softmax_back, r.members);
                                         }});

}  // namespace
}  // namespace dnl::cuda
