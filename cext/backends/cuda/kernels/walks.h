// Kernels that walk over two tensors at once: sums over dims, transposes, slices, and what flows back through them.
// Who may include: kernels/all.h. Includes: memory.h, reductions.h.
#pragma once
#include "memory.h"
#include "reductions.h"

namespace dnl::device {

struct Places {
  i64 x, y;
};
// Of number i of the axes.
inline Places places(const Axis* axis, int axes, i64 i) {
  Places at = {0, 0};
  for (int a = 0; a < axes; ++a) {
    const i64 k = i % axis[a].n;
    i /= axis[a].n;
    at.x += k * axis[a].x;
    at.y += k * axis[a].y;
  }
  return at;
}
inline i64 listed(u64 list, i64 m) { return list ? reinterpret_cast<const i64*>(list)[m] : 0; }

// Number i of y of member m, and the first of the numbers that it sums.
struct Visit {
  const float* x;
  float* y;
};
inline Visit visit(const Walk& r, i64 m, i64 i) {
  const Places at = places(r.axis, r.outs, i);
  return {row(r.x, m) + listed(r.at_x, m) + at.x, row(r.y, m) + listed(r.at_y, m) + at.y};
}
inline i64 summed(const Walk& r, i64 s) { return places(r.axis + r.outs, r.axes - r.outs, s).x; }

// A number a thread.
DNL_KERNEL(walk, Walk) {
  const Walk& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.n; i += s.step) {
    const Visit v = visit(r, i / r.n, i % r.n);
    double sum = *v.x;  // of one number that number: -0 too
    for (i64 k = 1; k < r.sums; ++k) sum += v.x[summed(r, k)];
    put(v.y, r.scale * static_cast<float>(sum), r.acc);
  }
}

// A number a block, for long sums.
DNL_KERNEL(walk_long, Walk) {
  const Walk& r = records[DNL_RECORD];
  for (i64 i = DNL_BLOCK; i < r.members * r.n; i += DNL_BLOCKS) {
    const Visit v = visit(r, i / r.n, i % r.n);
    const double sum = block_sum(r.sums, [&](i64 k) { return static_cast<double>(v.x[summed(r, k)]); });
    if (DNL_THREAD == 0) put(v.y, static_cast<float>(r.scale * sum), r.acc);
  }
}

DNL_KERNEL(deviation, Deviation) {
  const Deviation& d = records[DNL_RECORD];
  const Walk& r = d.walk;
  for (i64 i = DNL_BLOCK; i < r.members * r.n; i += DNL_BLOCKS) {
    const i64 m = i / r.n;
    const Visit v = visit(r, m, i % r.n);
    const double n = static_cast<double>(r.sums);
    const double sum = block_sum(r.sums, [&](i64 k) { return static_cast<double>(v.x[summed(r, k)]); });
    const float mean = static_cast<float>(sum / n);
    const double squares = block_sum(r.sums, [&](i64 k) {
      const double off = static_cast<double>(v.x[summed(r, k)]) - mean;
      return off * off;
    });
    if (DNL_THREAD != 0) continue;
    *v.y = static_cast<float>(sqrt(squares / n));
    row(d.mean, m)[places(r.axis, r.outs, i % r.n).y] = mean;
  }
}

DNL_KERNEL(deviation_back, DeviationBack) {
  const DeviationBack& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.members * r.n; i += s.step) {
    const i64 m = i / r.n;
    const Places at = places(r.axis, r.axes, i % r.n);
    const float y = row(r.y, m)[at.y], slope = y == 0.0f ? 0.0f : r.scale * row(r.dy, m)[at.y] / y;
    put(row(r.dx, m) + at.x, slope * (row(r.x, m)[at.x] - row(r.mean, m)[at.y]), r.acc);
  }
}

}  // namespace dnl::device
