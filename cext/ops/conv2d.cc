// Two-dimensional convolution, as a matrix product with the patches of the image (im2col).
//
// The image is {H,W,C}, filters {h,w,C,Co}, the result {H',W',Co}; window.h tells the sizes. Pooling is in pool2d.cc.
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/window.h"

namespace dnl {
namespace {

// Key words: n >= 2, stride of rows, stride of columns, n - 2 that are not read, valid.
struct Conv {
  const Call& c;
  Window r, w;
  idx channels, filters, places, patch;  // places of the window; numbers under it
  explicit Conv(const Call& call)
      : c(call),
        r(call.arg_dim[0]->rows(), call.arg_dim[1]->rows(), call.key[1].i, call.key[1 + call.key[0].i].i != 0),
        w(call.arg_dim[0]->cols(), call.arg_dim[1]->cols(), call.key[2].i, call.key[1 + call.key[0].i].i != 0),
        channels((*call.arg_dim[0])[2]),
        filters((*call.arg_dim[1])[3]),
        places(r.out * w.out),
        patch(r.k * w.k * channels) {}

  idx item(int j, idx e) const { return c.item(j, e); }
  idx batch() const { return c.out_dim[0].bd; }
  float* scratch() const { return c.scratch->alloc(static_cast<std::size_t>(places * patch)); }

  // f(column of the patch matrix, offset in the image of the column's first place, first and last row place + 1 inside)
  // for every position under the window and every column of places; `inside` false: all of it is padding.
  template <class F>
  void each_run(F f) const {
    idx at = 0;
    for (idx ch = 0; ch < channels; ++ch)
      for (idx kw = 0; kw < w.k; ++kw)
        for (idx kr = 0; kr < r.k; ++kr)
          for (idx ow = 0; ow < w.out; ++ow, at += r.out) {
            const idx col = ow * w.stride + kw - w.pad, shift = kr - r.pad;
            idx first = shift >= 0 ? 0 : (-shift + r.stride - 1) / r.stride;
            idx last = r.n - shift <= 0 ? 0 : (r.n - shift + r.stride - 1) / r.stride;
            last = std::min(last, r.out);
            if (col < 0 || col >= w.n || first > last) first = last = 0;
            f(at, (ch * w.n + col) * r.n + shift, first, last);
          }
  }
  // patches__kp: places by numbers under the window, places fastest.
  void patches(const float* x, float* to) const {
    each_run([&](idx at, idx from, idx first, idx last) {
      for (idx i = 0; i < first; ++i) to[at + i] = 0.f;
      for (idx i = first; i < last; ++i) to[at + i] = x[from + i * r.stride];
      for (idx i = last; i < r.out; ++i) to[at + i] = 0.f;
    });
  }
  void add_patches(const float* from_patches, float* dx) const {
    each_run([&](idx at, idx to, idx first, idx last) {
      for (idx i = first; i < last; ++i) dx[to + i * r.stride] += from_patches[at + i];
    });
  }

  void forward() const {
    float* p = scratch();
    for (int m = 0; m < c.members; ++m)
      for (idx e = 0; e < batch(); ++e) {
        patches(c.x[0][m] + item(0, e), p);
        float* y = c.y[0][m] + e * places * filters;
        if (c.nargs == 3)
          for (idx o = 0; o < filters; ++o) kernels().fill(places, (c.x[2][m] + item(2, e))[o], y + o * places);
        gemm(false, false, places, filters, patch, 1.f, p, places, c.x[1][m] + item(1, e), patch,
             c.nargs == 3 ? 1.f : 0.f, y, places);
      }
  }
  void backward_x() const {
    if (!c.dx[0].wanted()) return;
    float* p = scratch();
    for (int m = 0; m < c.members; ++m) {
      if (!c.acc[0]) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
      for (idx e = 0; e < batch(); ++e) {
        gemm(false, true, places, patch, filters, 1.f, c.dy[0][m] + e * places * filters, places,
             c.x[1][m] + item(1, e), patch, 0.f, p, places);
        add_patches(p, c.dx[0][m] + item(0, e));
      }
    }
  }
  void add_backward_f() const {
    float* p = scratch();
    for (int m = 0; m < c.members; ++m)
      for (idx e = 0; e < batch(); ++e) {
        patches(c.x[0][m] + item(0, e), p);
        gemm(true, false, patch, filters, places, 1.f, p, places, c.dy[0][m] + e * places * filters, places, 1.f,
             c.dx[1][m] + item(1, e), patch);
      }
  }
  void add_backward_b() const {
    for (int m = 0; m < c.members; ++m)
      for (idx e = 0; e < batch(); ++e)
        for (idx o = 0; o < filters; ++o)
          (c.dx[2][m] + item(2, e))[o] += kernels().sum(places, c.dy[0][m] + (e * filters + o) * places);
  }
  void backward() const {
    backward_x();
    for (int j = 1; j < c.nargs; ++j) {
      if (c.shared[j] || !c.dx[j].wanted()) continue;
      if (!c.acc[j])
        for (int m = 0; m < c.members; ++m) kernels().fill(c.arg_size(j), 0.f, c.dx[j][m]);
      j == 1 ? add_backward_f() : add_backward_b();
    }
  }
};

ShapeOut shape(const ShapeIn& in) {
  const Dim &x = in[0], &f = in[1];
  in.need(in.key[0].i >= 2, "stride must be two numbers");  // programs give four, as elsewhere; DyNet reads two
  const i32 sr = in.key[1].i, sw = in.key[2].i;
  const bool valid = in.key[1 + in.key[0].i].i != 0;
  in.need(sr >= 1 && sw >= 1, "strides must be positive");
  in.need((x.nd == 2 || x.nd == 3) && f.nd >= 2 && f.nd <= 4, "needs an image {H,W,C} and filters {h,w,C,Co}");
  in.need(f[2] == x[2], "image and filters must have the same number of channels");
  in.need(!valid || (f.rows() <= x.rows() && f.cols() <= x.cols()), "the filter is larger than the image");
  if (in.nargs == 3)
    in.need(in[2].is_vector() && in[2].rows() == f[3], "the bias must have one number for each filter");
  const Window r(x.rows(), f.rows(), sr, valid), w(x.cols(), f.cols(), sw, valid);
  return Dim({static_cast<u32>(r.out), static_cast<u32>(w.out), f[3]}, in.common_batch());
}

void shared_gradient(const Call& c, int wrt) { wrt == 1 ? Conv(c).add_backward_f() : Conv(c).add_backward_b(); }

const OpId conv2d_id = register_op([](OpDef& op) {
  op.signature = "conv2d(x: expr, f: expr, stride: ints, is_valid: bool = True)";
  op.doc =
      "Two-dimensional convolution of an image with filters.\n\n"
      "x {H,W,C}, f {h,w,C,Co} -> {H',W',Co}. stride is (rows, columns). With is_valid there is no padding, and "
      "H' = floor((H - h) / stride) + 1. Without it, zeros surround the image, and H' = ceil(H / stride). W' "
      "likewise. Batch sizes must be equal or 1. ValueError for other shapes, for a stride below 1, and for a "
      "filter larger than an image without padding.";
  op.args = {{"x"}, {"f", Batch::Weight}};
  op.shape = shape;
  op.forward = [](const Call& c) { Conv(c).forward(); };
  op.backward = [](const Call& c) { Conv(c).backward(); };
  op.backward_shared = shared_gradient;
});

const OpId conv2d_bias_id = register_op([](OpDef& op) {
  op.signature = "conv2d_bias(x: expr, f: expr, b: expr, stride: ints, is_valid: bool = True)";
  op.doc =
      "conv2d() plus a bias for each filter.\n\n"
      "x {H,W,C}, f {h,w,C,Co}, b {Co} -> {H',W',Co}. Everything else is as for conv2d().";
  op.args = {{"x"}, {"f", Batch::Weight}, {"b", Batch::Weight}};
  op.shape = shape;
  op.forward = [](const Call& c) { Conv(c).forward(); };
  op.backward = [](const Call& c) { Conv(c).backward(); };
  op.backward_shared = shared_gradient;
});

}  // namespace
}  // namespace dnl
