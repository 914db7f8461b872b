// maxpooling2d: the largest number under a window that moves over an image. Padding is no number: a window is what of
// it lies inside. Of equal numbers the first one wins, row by row: images have many, and DyNet orders them so.
#include "kernels/kernels.h"
#include "op/op.h"
#include "ops/window.h"

namespace dnl {
namespace {

// The key words: n >= 2, window rows, window columns, n - 2 that are not read (DyNet takes no notice of a third number,
// and programs give it), the same for the strides, valid.
struct Pooling {
  i32 kr, kw, sr, sw;
  bool valid;
  explicit Pooling(const Word* key) {
    const i32 n = key[0].i, m = key[1 + n].i;
    kr = key[1].i, kw = key[2].i, sr = key[2 + n].i, sw = key[3 + n].i;
    valid = key[2 + n + m].i != 0;
  }
};

ShapeOut shape(const ShapeIn& in) {
  const Dim& x = in[0];
  const i32 n = in.key[0].i;
  in.need(n >= 2 && in.key[1 + n].i >= 2, "ksize and stride must be two numbers each");
  const Pooling p(in.key);
  in.need(p.kr >= 1 && p.kw >= 1 && p.sr >= 1 && p.sw >= 1, "ksize and stride must be positive");
  in.need(x.nd == 2 || x.nd == 3, "needs an image {H,W,C}");
  in.need(!p.valid || (static_cast<u32>(p.kr) <= x.rows() && static_cast<u32>(p.kw) <= x.cols()),
          "the window is larger than the image");
  const Window r(x.rows(), p.kr, p.sr, p.valid), w(x.cols(), p.kw, p.sw, p.valid);
  Dim y({static_cast<u32>(r.out), static_cast<u32>(w.out), x[2]}, x.bd);
  y.nd = x.nd;
  return ShapeOut(y).hidden(y);  // hidden: place of the largest in its channel, an integer
}

void forward(const Call& c) {
  const Dim& x_dim = *c.arg_dim[0];
  const Pooling p(c.key);
  const Window r(x_dim.rows(), p.kr, p.sr, p.valid), w(x_dim.cols(), p.kw, p.sw, p.valid);
  const idx slices = static_cast<idx>(x_dim[2]) * x_dim.bd;
  for (int m = 0; m < c.members; ++m) {
    float *y = c.y[0][m], *place = c.y[1][m];
    for (idx s = 0; s < slices; ++s) {
      const float* x = c.x[0][m] + s * r.n * w.n;
      for (idx ow = 0; ow < w.out; ++ow)
        for (idx orow = 0; orow < r.out; ++orow) {
          idx best = w.first(ow) * r.n + r.first(orow);
          for (idx row = r.first(orow); row < r.last(orow); ++row)
            for (idx col = w.first(ow); col < w.last(ow); ++col) {
              const float v = x[col * r.n + row];
              if (v > x[best] || (v != v && x[best] == x[best])) best = col * r.n + row;
            }
          *y++ = x[best];
          const u32 at = static_cast<u32>(best);
          std::memcpy(place++, &at, sizeof at);
        }
    }
  }
}

void backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Dim &x_dim = *c.arg_dim[0], &y_dim = c.out_dim[0];
  const idx slices = static_cast<idx>(x_dim[2]) * x_dim.bd, places = static_cast<idx>(y_dim.rows()) * y_dim.cols();
  const idx slice = static_cast<idx>(x_dim.rows()) * x_dim.cols();
  for (int m = 0; m < c.members; ++m) {
    if (!c.acc[0]) kernels().fill(c.arg_size(0), 0.f, c.dx[0][m]);
    for (idx s = 0; s < slices; ++s)
      for (idx i = s * places; i < (s + 1) * places; ++i) {
        u32 at;
        std::memcpy(&at, c.y[1][m] + i, sizeof at);
        c.dx[0][m][s * slice + at] += c.dy[0][m][i];
      }
  }
}

const OpId maxpooling2d_id = register_op([](OpDef& op) {
  op.signature = "maxpooling2d(x: expr, ksize: ints, stride: ints, is_valid: bool = True)";
  op.doc =
      "The largest number in each window of an image, channel by channel.\n\n"
      "{H,W,C} -> {H',W',C}; {H,W} -> {H',W'}. ksize, the size of a window, and stride are (rows, columns). "
      "With is_valid all windows lie inside the image, and H' = floor((H - k) / stride) + 1. Without it, "
      "windows may reach over the edge, and H' = ceil(H / stride). W' likewise. ValueError for other shapes, "
      "sizes and strides below 1, and windows larger than the image with is_valid.";
  op.args = {{"x"}};
  op.shape = shape;
  op.forward = forward;
  op.backward = backward;
});

}  // namespace
}  // namespace dnl
