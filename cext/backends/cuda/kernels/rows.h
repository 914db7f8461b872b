// Kernels that move and add rows. Who may include: kernels/all.h. Includes: memory.h.
#pragma once
#include "memory.h"

namespace dnl::device {

DNL_KERNEL(fill, Fill) {
  const Fill& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.k * r.n; i += s.step) row(r.y, i / r.n)[i % r.n] = r.v;
}

DNL_KERNEL(copy_rows, CopyRows) {
  const CopyRows& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.k * r.n; i += s.step) {
    const i64 m = i / r.n, j = i % r.n;
    put(row(r.to, m) + j, row(r.from, m)[j], r.add);
  }
}

DNL_KERNEL(gather_sums, GatherSums) {
  const GatherSums& r = records[DNL_RECORD];
  const u32 *begin = reinterpret_cast<const u32*>(r.begin), *source = reinterpret_cast<const u32*>(r.source);
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.k * r.n; i += s.step) {
    const i64 t = i / r.n, j = i % r.n;
    float* to = row(r.to, t) + j;
    float sum = *to;
    for (u32 e = begin[t]; e < begin[t + 1]; ++e) sum += row(r.from, source[e])[j];
    *to = sum;
  }
}

DNL_KERNEL(scale_to, ScaleTo) {
  const ScaleTo& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.n; i += s.step) put(floats(r.y) + i, r.a * floats(r.x)[i], r.acc);
}

// A block sums 8 columns: 32 threads a column, each every 32nd row, then these in order.
DNL_KERNEL(sum_rows, SumRows) {
  const SumRows& r = records[DNL_RECORD];
  constexpr int kColumns = 8, kLanes = 32;
  DNL_SHARED float part[kLanes][kColumns];
  const int column = DNL_THREAD % kColumns, lane = DNL_THREAD / kColumns;
  for (i64 at = static_cast<i64>(DNL_BLOCK) * kColumns; at < r.n; at += static_cast<i64>(DNL_BLOCKS) * kColumns) {
    float sum = 0;
    if (at + column < r.n)
      for (i64 m = lane; m < r.k; m += kLanes) sum += row(r.from, m)[at + column];
    part[lane][column] = sum;
    DNL_BARRIER();
    if (lane == 0 && at + column < r.n) {
      for (int l = 1; l < kLanes; ++l) sum += part[l][column];
      put(floats(r.y) + at + column, sum, r.acc);
    }
    DNL_BARRIER();
  }
}

DNL_KERNEL(scale_rows, ScaleRows) {
  const ScaleRows& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.k * r.n; i += s.step) {
    const i64 m = i / r.n, j = i % r.n;
    floats(r.y)[m * r.step + j] = floats(r.a)[m] * row(r.x, m)[j];
  }
}

DNL_KERNEL(transpose, Transpose) {
  const Transpose& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 i = s.first; i < r.k * r.n; i += s.step) {
    const i64 from = i / r.n, to = i % r.n;
    put(floats(r.y) + to * r.to_step + from, floats(r.x)[from * r.from_step + to], r.acc);
  }
}

// A block takes segments in turns.
DNL_KERNEL(copy_segments, CopySegments) {
  const CopySegments& r = records[DNL_RECORD];
  for (i64 k = DNL_BLOCK; k < r.k; k += DNL_BLOCKS) {
    const Segment& s = reinterpret_cast<const Segment*>(r.segments)[k];
    float *there = floats(s.at), *here = floats(r.packed) + s.offset;
    for (u64 i = static_cast<u64>(DNL_THREAD); i < s.n; i += 128)
      (r.back ? there[i] : here[i]) = r.back ? here[i] : there[i];
  }
}

}  // namespace dnl::device
