// Ops on images and on square matrices: convolutions, pooling, inverse, logdet.
#include <algorithm>

#include "backends/cuda/ops.h"

namespace dnl::cuda {
namespace {

// The places of a window of k along an axis of n (ops/window.h has the rule), and the padding before the axis.
struct Places {
  idx out, pad;
  Places(idx n, idx k, idx stride, bool valid)
      : out(valid ? (n - k) / stride + 1 : (n + stride - 1) / stride),
        pad(valid ? 0 : std::max<idx>(0, (out - 1) * stride + k - n) / 2) {}
};

device::Image image_of(const Call& c, idx k_rows, idx k_cols, idx stride_rows, idx stride_cols, bool valid) {
  const Dim& x = *c.arg_dim[0];
  const Places down(x.rows(), k_rows, stride_rows, valid), across(x.cols(), k_cols, stride_cols, valid);
  device::Image r{};
  r.members = c.members;
  r.batch = c.out_dim[0].bd;
  r.rows = x.rows();
  r.cols = x.cols();
  r.channels = x[2];
  r.k_rows = k_rows;
  r.k_cols = k_cols;
  r.stride_rows = stride_rows;
  r.stride_cols = stride_cols;
  r.pad_rows = down.pad;
  r.pad_cols = across.pad;
  r.out_rows = down.out;
  r.out_cols = across.out;
  r.step_x = step_of(c, 0);
  return r;
}

// Key words: n >= 2, stride of rows, stride of columns, n - 2 that are not read, valid.
device::Image convolution_of(const Call& c) {
  const Dim& f = *c.arg_dim[1];
  device::Image r = image_of(c, f.rows(), f.cols(), c.key[1].i, c.key[2].i, c.key[1 + c.key[0].i].i != 0);
  r.filters = f[3];
  r.step_f = step_of(c, 1);
  r.step_bias = c.nargs == 3 ? step_of(c, 2) : 0;
  return r;
}
void convolution_forward(const Call& c) {
  device::Image r = convolution_of(c);
  r.x = read_argument(c, 0);
  r.f = read_argument(c, 1);
  if (c.nargs == 3) r.bias = read_argument(c, 2);
  r.y = write_output(c, 0);
  recorder().add(Kernel::convolution, r, r.members * static_cast<idx>(c.out_size()));
}
// Adds the gradient of the filters (argument 1) or the bias (2).
void add_weights(const Call& c, int j, const Rows& to) {
  device::Image r = convolution_of(c);
  if (j == 1) r.x = read_argument(c, 0);
  r.dy = read_gradient(c, 0);
  r.for_all = c.shared[j];
  r.dx = write(to, c.shared[j] ? 1 : c.members, c.arg_size(j));
  recorder().add(Kernel::convolution_weights, r, (c.shared[j] ? 1 : c.members) * static_cast<idx>(c.arg_size(j)) * 128);
}
void convolution_backward(const Call& c) {
  Gradients to(c);
  if (to.wanted(0)) {
    device::Image r = convolution_of(c);
    r.f = read_argument(c, 1);
    r.dy = read_gradient(c, 0);
    r.dx = to.write(0);
    r.acc = to.acc(0);
    recorder().add(Kernel::convolution_back, r, r.members * static_cast<idx>(c.arg_size(0)));
  }
  for (int j = 1; j < c.nargs; ++j) {
    if (c.shared[j] || !to.wanted(j)) continue;
    to.clear(j);
    add_weights(c, j, to.rows(j));
  }
  to.done();
}
void convolution_shared(const Call& c, int wrt) { add_weights(c, wrt, c.dx[wrt]); }
const DeviceOpEntry conv2d("conv2d", {convolution_forward, convolution_backward, convolution_shared});
const DeviceOpEntry conv2d_bias("conv2d_bias", {convolution_forward, convolution_backward, convolution_shared});

// Key words: n >= 2, window rows, window columns, n - 2 that are not read, the same for the strides, valid.
device::Image pooling_of(const Call& c) {
  const Word* key = c.key;
  const i32 n = key[0].i, m = key[1 + n].i;
  return image_of(c, key[1].i, key[2].i, key[2 + n].i, key[3 + n].i, key[2 + n + m].i != 0);
}
const DeviceOpEntry maxpooling2d("maxpooling2d", {[](const Call& c) {
                                                    device::Image r = pooling_of(c);
                                                    r.x = read_argument(c, 0);
                                                    r.y = write_output(c, 0);
                                                    r.z = write_output(c, 1);
                                                    recorder().add(Kernel::pooling, r,
                                                                   r.members * static_cast<idx>(c.out_size()));
                                                  },
                                                  [](const Call& c) {
                                                    if (!c.dx[0].wanted()) return;
                                                    Gradients to(c);
                                                    device::Image r = pooling_of(c);
                                                    r.z = read_output(c, 1);
                                                    r.dy = read_gradient(c, 0);
                                                    r.dx = to.write(0);
                                                    r.acc = to.acc(0);
                                                    recorder().add(Kernel::pooling_back, r,
                                                                   r.members * static_cast<idx>(c.arg_size(0)));
                                                    to.done();
                                                  }});

// ---- square matrices -----------------------------------------------------------------------------------------------

device::Matrices matrices_of(const Call& c) {
  device::Matrices r{};
  r.members = c.members;
  r.batch = c.arg_dim[0]->bd;
  r.n = c.arg_dim[0]->rows();
  r.work_bytes = ((r.n + 1) * r.n * 8 + r.n * 4 + 7) / 8 * 8;
  const idx floats = r.members * r.batch * r.work_bytes / 4;
  r.work = recorder().writes(recorder().temporary(static_cast<std::size_t>(floats)), floats);
  return r;
}
void add_matrices(Kernel kernel, const device::Matrices& r) { recorder().add(kernel, r, r.members * r.batch); }

void inverse_backward(const Call& c) {  // dX = -Y^T dY Y^T
  if (!c.dx[0].wanted()) return;
  const idx n = c.arg_dim[0]->rows();
  for (int m = 0; m < c.members; ++m)
    for (idx e = 0; e < c.arg_dim[0]->bd; ++e) {
      const idx at = e * n * n;
      float* t = recorder().temporary(static_cast<std::size_t>(n * n));
      products().gemm(true, false, n, n, n, 1.0f, c.y[0][m] + at, n, c.dy[0][m] + at, n, 0.0f, t, n);
      products().gemm(false, true, n, n, n, -1.0f, t, n, c.y[0][m] + at, n, c.acc[0] ? 1.0f : 0.0f, c.dx[0][m] + at, n);
    }
}
const DeviceOpEntry inverse("inverse", {[](const Call& c) {
                                          device::Matrices r = matrices_of(c);
                                          r.x = read_argument(c, 0);
                                          r.y = write_output(c, 0);
                                          add_matrices(Kernel::inverse, r);
                                        },
                                        inverse_backward});
const DeviceOpEntry logdet("logdet", {[](const Call& c) {
                                        device::Matrices r = matrices_of(c);
                                        r.x = read_argument(c, 0);
                                        r.y = write_output(c, 0);
                                        add_matrices(Kernel::log_determinant, r);
                                      },
                                      [](const Call& c) {
                                        if (!c.dx[0].wanted()) return;
                                        Gradients to(c);
                                        device::Matrices r = matrices_of(c);
                                        r.x = read_argument(c, 0);
                                        r.dy = read_gradient(c, 0);
                                        r.dx = to.write(0);
                                        r.acc = to.acc(0);
                                        add_matrices(Kernel::log_determinant_back, r);
                                        to.done();
                                      }});

}  // namespace
}  // namespace dnl::cuda
