// Kernels over lists of arguments, number by number, and over segments of columns.
// Who may include: kernels/all.h. Includes: memory.h, functions.h, reductions.h.
#pragma once
#include "functions.h"
#include "memory.h"
#include "reductions.h"

namespace dnl::device {

inline const Rows& argument(u64 list, int j) { return reinterpret_cast<const Rows*>(list)[j]; }
inline i32 word(u64 list, i64 i) { return reinterpret_cast<const i32*>(list)[i]; }

// Number i of element e of member m, of each argument.
struct OfList {
  const List& r;
  i64 m, e, i;
  int count;
  OfList(const List& list, i64 member, i64 element, i64 number)
      : r(list), m(member), e(element), i(number), count(list.counts ? word(list.counts, member) : list.nargs) {}
  i64 at(int j) const { return e * reinterpret_cast<const i64*>(r.step)[j] + i; }
  float x(int j) const { return row(argument(r.args, j), m)[at(j)]; }
  // Of an argument that repeats, the elements add up.
  void give(int j, float d) const {
    const Rows& to = argument(r.gradients, j);
    const bool repeats = reinterpret_cast<const i64*>(r.step)[j] == 0;
    if (wanted(to)) put(row(to, m) + at(j), d, word(r.acc, j) || (repeats && e > 0));
  }
  float factor() const { return r.factors ? floats(r.factors)[m] : r.scale; }
};

inline float list_log_sum_exp(const OfList& l) {
  float shift = l.x(0);
  for (int j = 1; j < l.count; ++j) shift = vmax(l.x(j), shift);
  if (!(shift - shift == 0.0f) && shift == shift) shift = 0.0f;
  float sum = 0;
  for (int j = 0; j < l.count; ++j) sum += vexp(l.x(j) - shift);
  return shift + vlog(sum);
}

// A number of the result a thread.
DNL_KERNEL(list, List) {
  const List& r = records[DNL_RECORD];
  const Stride s = stride(128);
  const i64 size = r.batch * r.n;
  for (i64 k = s.first; k < r.members * size; k += s.step) {
    const OfList l(r, k / size, k % size / r.n, k % r.n);
    float v;
    if (r.what == kListLogSumExp) {
      v = list_log_sum_exp(l);
    } else if (r.what == kListMax) {
      v = l.x(0);
      for (int j = 1; j < l.count; ++j) v = l.x(j) > v || l.x(j) != l.x(j) ? l.x(j) : v;
    } else {
      const float f = l.factor();
      v = f * l.x(0);
      for (int j = 1; j < l.count; ++j) v += f * l.x(j);
    }
    row(r.y, l.m)[k % size] = v;
  }
}

// A block: sums of long lists.
DNL_KERNEL(list_sum, List) {
  const List& r = records[DNL_RECORD];
  const i64 size = r.batch * r.n;
  for (i64 k = DNL_BLOCK; k < r.members * size; k += DNL_BLOCKS) {
    const OfList l(r, k / size, k % size / r.n, k % r.n);
    const double sum = block_sum(l.count, [&](i64 j) { return static_cast<double>(l.x(static_cast<int>(j))); });
    if (DNL_THREAD == 0) row(r.y, l.m)[k % size] = static_cast<float>(l.factor() * sum);
  }
}

// A number of an argument a thread.
DNL_KERNEL(list_sum_back, List) {
  const List& r = records[DNL_RECORD];
  const Stride s = stride(128);
  const i64 size = r.batch * r.n, each = r.members * size;
  for (i64 k = s.first; k < r.nargs * each; k += s.step) {
    const int j = static_cast<int>(k / each);
    const i64 m = k % each / size, e = k % size / r.n, i = k % r.n;
    const bool repeats = reinterpret_cast<const i64*>(r.step)[j] == 0;
    if (repeats && e > 0) continue;
    for (i64 b = e; b < (repeats ? r.batch : e + 1); ++b) {
      const OfList l(r, m, b, i);
      l.give(j, j < l.count ? l.factor() * row(r.dy, m)[b * r.n + i] : 0.0f);
    }
  }
}

// A number of an element a thread: of a maximum the first of equal arguments takes the gradient.
DNL_KERNEL(list_back, List) {
  const List& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 k = s.first; k < r.members * r.n; k += s.step)
    for (i64 e = 0; e < r.batch; ++e) {
      const OfList l(r, k / r.n, e, k % r.n);
      const float y = row(r.y, l.m)[e * r.n + l.i];
      float rest = row(r.dy, l.m)[e * r.n + l.i];
      for (int j = 0; j < r.nargs; ++j) {
        float d = 0;
        if (j < l.count && r.what == kListMax) {
          if (l.x(j) == y) d = rest, rest = 0.0f;
        } else if (j < l.count) {
          d = rest * (l.x(j) == -DNL_INFINITY ? 0.0f : l.x(j) == y ? 1.0f : vexp(l.x(j) - y));
        }
        l.give(j, d);
      }
    }
}

// ---- segments ------------------------------------------------------------------------------------------------------

// The columns of a segment, each at its place in x, and their number of the result, at `y`.
struct Segment1 {
  const Segments& r;
  i64 m, y;
  u32 begin, end;
  i64 base;

  Segment1(const Segments& all, i64 k) : r(all) {
    const i64 size = all.outer * all.segments * all.inner;
    m = k / size;
    y = k % size;
    const i64 s = y / all.inner % all.segments, e = y / (all.inner * all.segments);
    const u32* first = reinterpret_cast<const u32*>(all.begin) + m * (all.segments + 1) + s;
    begin = first[0];
    end = first[1];
    base = e * all.n * all.inner + y % all.inner;
  }
  i64 at(u32 place) const { return base + reinterpret_cast<const u32*>(r.order)[m * r.n + place] * r.inner; }
  float factor() const { return r.mean && end > begin ? 1.0f / static_cast<float>(end - begin) : 1.0f; }
};
inline i64 segment_numbers(const Segments& r) { return r.members * r.outer * r.segments * r.inner; }

DNL_KERNEL(segment_sum, Segments) {
  const Segments& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 k = s.first; k < segment_numbers(r); k += s.step) {
    const Segment1 one(r, k);
    float sum = 0;
    for (u32 c = one.begin; c < one.end; ++c) sum += one.factor() * row(r.x, one.m)[one.at(c)];
    row(r.y, one.m)[one.y] = sum;
  }
}
DNL_KERNEL(segment_sum_back, Segments) {
  const Segments& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 k = s.first; k < segment_numbers(r); k += s.step) {
    const Segment1 one(r, k);
    const float d = one.factor() * row(r.dy, one.m)[one.y];
    for (u32 c = one.begin; c < one.end; ++c) put(row(r.dx, one.m) + one.at(c), d, r.acc);
  }
}
DNL_KERNEL(segment_max, Segments) {
  const Segments& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 k = s.first; k < segment_numbers(r); k += s.step) {
    const Segment1 one(r, k);
    float most = -DNL_INFINITY;
    for (u32 c = one.begin; c < one.end; ++c) {
      const float x = row(r.x, one.m)[one.at(c)];
      most = x > most || x != x ? x : most;
    }
    row(r.y, one.m)[one.y] = most;
  }
}
// The first of equal ones takes the gradient.
DNL_KERNEL(segment_max_back, Segments) {
  const Segments& r = records[DNL_RECORD];
  const Stride s = stride(128);
  for (i64 k = s.first; k < segment_numbers(r); k += s.step) {
    const Segment1 one(r, k);
    const float y = row(r.y, one.m)[one.y];
    float rest = row(r.dy, one.m)[one.y];
    for (u32 c = one.begin; c < one.end; ++c) {
      const bool mine = row(r.x, one.m)[one.at(c)] == y;
      put(row(r.dx, one.m) + one.at(c), mine ? rest : 0.0f, r.acc);
      if (mine) rest = 0.0f;
    }
  }
}

}  // namespace dnl::device
