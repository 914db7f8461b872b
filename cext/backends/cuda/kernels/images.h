// Convolutions and pooling, and what two vectors come to: a number of the result, or of a gradient, a thread; those of
// filters a block. Who may include: kernels/all.h. Includes: memory.h, reductions.h.
#pragma once
#include "memory.h"
#include "reductions.h"

namespace dnl::device {

// Number i of an image: its row, column, channel.
struct Pixel {
  i64 row, col, channel;
};
inline Pixel pixel(i64 rows, i64 cols, i64 i) { return {i % rows, i / rows % cols, i / (rows * cols)}; }
inline bool inside(const Image& r, i64 row, i64 col) { return row >= 0 && row < r.rows && col >= 0 && col < r.cols; }
inline i64 image_size(const Image& r) { return r.rows * r.cols * r.channels; }
inline i64 result_size(const Image& r, i64 channels) { return r.out_rows * r.out_cols * channels; }
// Places of the window, along an axis, that lie over position i: first .. last.
inline i64 first_over(i64 i, i64 k, i64 stride, i64 pad) {
  const i64 low = i + pad - k + 1;
  return low <= 0 ? 0 : (low + stride - 1) / stride;
}
inline i64 last_over(i64 i, i64 stride, i64 pad, i64 out) {
  const i64 last = (i + pad) / stride;
  return last < out ? last : out - 1;
}

DNL_KERNEL(convolution, Image) {
  const Image& r = records[DNL_RECORD];
  const Stride s = stride(128);
  const i64 size = result_size(r, r.filters);
  for (i64 i = s.first; i < r.members * r.batch * size; i += s.step) {
    const i64 m = i / (r.batch * size), e = i / size % r.batch;
    const Pixel p = pixel(r.out_rows, r.out_cols, i % size);
    const float *x = row(r.x, m) + e * r.step_x, *f = row(r.f, m) + e * r.step_f;
    f += p.channel * r.k_rows * r.k_cols * r.channels;
    double sum = wanted(r.bias) ? row(r.bias, m)[e * r.step_bias + p.channel] : 0.0f;
    for (i64 ch = 0; ch < r.channels; ++ch)
      for (i64 kc = 0; kc < r.k_cols; ++kc)
        for (i64 kr = 0; kr < r.k_rows; ++kr, ++f) {
          const i64 a = p.row * r.stride_rows + kr - r.pad_rows, b = p.col * r.stride_cols + kc - r.pad_cols;
          if (inside(r, a, b)) sum += static_cast<double>(x[(ch * r.cols + b) * r.rows + a]) * *f;
        }
    row(r.y, m)[i % (r.batch * size)] = static_cast<float>(sum);
  }
}

// What flows into one pixel from element e.
inline double into_pixel(const Image& r, i64 m, i64 e, const Pixel& p) {
  const float *f = row(r.f, m) + e * r.step_f, *dy = row(r.dy, m) + e * result_size(r, r.filters);
  double sum = 0;
  for (i64 o = 0; o < r.filters; ++o)
    for (i64 b = first_over(p.col, r.k_cols, r.stride_cols, r.pad_cols);
         b <= last_over(p.col, r.stride_cols, r.pad_cols, r.out_cols); ++b)
      for (i64 a = first_over(p.row, r.k_rows, r.stride_rows, r.pad_rows);
           a <= last_over(p.row, r.stride_rows, r.pad_rows, r.out_rows); ++a) {
        const i64 kr = p.row + r.pad_rows - a * r.stride_rows, kc = p.col + r.pad_cols - b * r.stride_cols;
        sum += static_cast<double>(dy[(o * r.out_cols + b) * r.out_rows + a]) *
               f[((o * r.channels + p.channel) * r.k_cols + kc) * r.k_rows + kr];
      }
  return sum;
}
// Elements of an image that repeats add up.
DNL_KERNEL(convolution_back, Image) {
  const Image& r = records[DNL_RECORD];
  const Stride s = stride(128);
  const i64 size = image_size(r), own = r.step_x ? r.batch : 1, each = r.batch / own;
  for (i64 i = s.first; i < r.members * own * size; i += s.step) {
    const i64 m = i / (own * size), e = i / size % own;
    double sum = 0;
    for (i64 k = 0; k < each; ++k) sum += into_pixel(r, m, e * each + k, pixel(r.rows, r.cols, i % size));
    put(row(r.dx, m) + i % (own * size), static_cast<float>(sum), r.acc);
  }
}
// Added to dx, of the filters or, without x, of the bias: of each member or for all.
DNL_KERNEL(convolution_weights, Image) {
  const Image& r = records[DNL_RECORD];
  const bool bias = !wanted(r.x);
  const i64 one = bias ? 1 : r.k_rows * r.k_cols * r.channels, size = one * r.filters;
  const i64 step = bias ? r.step_bias : r.step_f, own = step ? r.batch : 1, each = r.batch / own;
  const i64 members = r.for_all ? r.members : 1, places_of_y = r.out_rows * r.out_cols;
  for (i64 i = DNL_BLOCK; i < (r.for_all ? 1 : r.members) * own * size; i += DNL_BLOCKS) {
    const i64 first = i / (own * size), element = i / size % own, o = i % size / one;
    const Pixel p = pixel(r.k_rows, r.k_cols, i % one);
    const double sum = block_sum(members * each * places_of_y, [&](i64 k) {
      const i64 m = first + k / (each * places_of_y), e = element * each + k / places_of_y % each, at = k % places_of_y;
      const double d = row(r.dy, m)[(e * r.filters + o) * places_of_y + at];
      if (bias) return d;
      const i64 a = at % r.out_rows * r.stride_rows + p.row - r.pad_rows,
                b = at / r.out_rows * r.stride_cols + p.col - r.pad_cols;
      return inside(r, a, b) ? d * row(r.x, m)[e * r.step_x + (p.channel * r.cols + b) * r.rows + a] : 0.0;
    });
    if (DNL_THREAD == 0) put(row(r.dx, first) + i % (own * size), static_cast<float>(sum), true);
  }
}

// Where the largest was found is kept in z, as an integer. Of equal ones the first row's, then the first column's.
DNL_KERNEL(pooling, Image) {
  const Image& r = records[DNL_RECORD];
  const Stride s = stride(128);
  const i64 size = r.batch * result_size(r, r.channels);
  for (i64 i = s.first; i < r.members * size; i += s.step) {
    const i64 m = i / size;
    const Pixel p = pixel(r.out_rows, r.out_cols, i % size);  // the channels of all elements one after another
    const float* x = row(r.x, m) + p.channel * r.rows * r.cols;
    i64 best = -1;
    for (i64 kr = 0; kr < r.k_rows; ++kr)
      for (i64 kc = 0; kc < r.k_cols; ++kc) {
        const i64 a = p.row * r.stride_rows + kr - r.pad_rows, b = p.col * r.stride_cols + kc - r.pad_cols;
        if (!inside(r, a, b)) continue;
        const float v = x[b * r.rows + a];
        if (best < 0 || v > x[best] || (v != v && x[best] == x[best])) best = b * r.rows + a;
      }
    row(r.y, m)[i % size] = x[best];
    *reinterpret_cast<u32*>(row(r.z, m) + i % size) = static_cast<u32>(best);
  }
}
DNL_KERNEL(pooling_back, Image) {
  const Image& r = records[DNL_RECORD];
  const Stride s = stride(128);
  const i64 size = r.batch * image_size(r);
  for (i64 i = s.first; i < r.members * size; i += s.step) {
    const i64 m = i / size;
    const Pixel p = pixel(r.rows, r.cols, i % size);
    const u32 own = static_cast<u32>(p.col * r.rows + p.row);
    float sum = 0;
    for (i64 b = first_over(p.col, r.k_cols, r.stride_cols, r.pad_cols);
         b <= last_over(p.col, r.stride_cols, r.pad_cols, r.out_cols); ++b)
      for (i64 a = first_over(p.row, r.k_rows, r.stride_rows, r.pad_rows);
           a <= last_over(p.row, r.stride_rows, r.pad_rows, r.out_rows); ++a) {
        const i64 at = (p.channel * r.out_cols + b) * r.out_rows + a;
        if (*reinterpret_cast<const u32*>(row(r.z, m) + at) == own) sum += row(r.dy, m)[at];
      }
    put(row(r.dx, m) + i % size, sum, r.acc);
  }
}

// ---- two vectors: their product
// ---------------------------------------------------------------------------------------

DNL_KERNEL(dot, TwoVectors) {
  const TwoVectors& r = records[DNL_RECORD];
  for (i64 i = DNL_BLOCK; i < r.members * r.batch; i += DNL_BLOCKS) {
    const i64 m = i / r.batch, e = i % r.batch;
    const float *u = row(r.u, m) + e * r.step_u, *v = row(r.v, m) + e * r.step_v;
    const double sum = block_sum(r.n, [&](i64 k) { return static_cast<double>(u[k]) * v[k]; });
    if (DNL_THREAD == 0) row(r.y, m)[e] = static_cast<float>(sum);
  }
}
DNL_KERNEL(dot_back, TwoVectors) {
  const TwoVectors& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.n; i += s.step) {
    const i64 m = i / r.n, k = i % r.n;
    for (i64 e = 0; e < r.batch; ++e) {
      const i64 at_u = e * r.step_u + k, at_v = e * r.step_v + k;
      const float d = row(r.dy, m)[e];
      if (wanted(r.du)) put(row(r.du, m) + at_u, d * row(r.v, m)[at_v], r.acc_u || (!r.step_u && e > 0));
      if (wanted(r.dv)) put(row(r.dv, m) + at_v, d * row(r.u, m)[at_u], r.acc_v || (!r.step_v && e > 0));
    }
  }
}

// ---- circular convolution and correlation --------------------------------------------------------------------------

// y[k] = sum_j u[j] v[k - j], or v[k + j].
inline i64 turned(const TwoVectors& r, i64 k, i64 j) { return (r.correlation ? k + j : k - j + r.n) % r.n; }
DNL_KERNEL(circular, TwoVectors) {
  const TwoVectors& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.batch * r.n; i += s.step) {
    const i64 m = i / (r.batch * r.n), e = i / r.n % r.batch, k = i % r.n;
    const float *u = row(r.u, m) + e * r.step_u, *v = row(r.v, m) + e * r.step_v;
    double sum = 0;
    for (i64 j = 0; j < r.n; ++j) sum += static_cast<double>(u[j]) * v[turned(r, k, j)];
    row(r.y, m)[e * r.n + k] = static_cast<float>(sum);
  }
}
// Number k of both gradients a thread: du[k] = sum_i dy[i] v[turned(i, k)], dv[k] the same of u.
DNL_KERNEL(circular_back, TwoVectors) {
  const TwoVectors& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.n; i += s.step) {
    const i64 m = i / r.n, k = i % r.n;
    for (i64 e = 0; e < r.batch; ++e) {
      const float *u = row(r.u, m) + e * r.step_u, *v = row(r.v, m) + e * r.step_v, *dy = row(r.dy, m) + e * r.n;
      double du = 0, dv = 0;
      for (i64 j = 0; j < r.n; ++j) {
        du += static_cast<double>(dy[j]) * v[turned(r, j, k)];
        dv += static_cast<double>(u[j]) * dy[r.correlation ? (k - j + r.n) % r.n : (k + j) % r.n];
      }
      if (wanted(r.du)) put(row(r.du, m) + e * r.step_u + k, static_cast<float>(du), r.acc_u || (!r.step_u && e > 0));
      if (wanted(r.dv)) put(row(r.dv, m) + e * r.step_v + k, static_cast<float>(dv), r.acc_v || (!r.step_v && e > 0));
    }
  }
}

}  // namespace dnl::device
