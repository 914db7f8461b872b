// Ops that walk over two tensors: sums and means over dims, standard deviations, transposes, ranges, picks.
#include "backends/cuda/ops.h"
#include "base/walk.h"

namespace dnl::cuda {
namespace {

idx positions(const Walk& w) {
  idx n = 1;
  for (int a = 0; a < w.axes(); ++a) n *= w.count(a);
  return n;
}
void list_axes(const Walk& w, device::Axis* to) {
  for (int a = 0; a < w.axes(); ++a) to[a] = {w.count(a), w.step_x(a), w.step_y(a)};
}

struct Sides {
  Rows x, y;
  std::size_t x_size, y_size;
  u64 at_x = 0, at_y = 0;
};
// Axes of the result, then those that are summed.
device::Walk walk_of(const Call& c, const Walk& outs, const Walk& sums) {
  device::Walk r{};
  r.members = c.members;
  r.n = positions(outs);
  r.sums = positions(sums);
  r.outs = outs.axes();
  r.axes = outs.axes() + sums.axes();
  list_axes(outs, r.axis);
  list_axes(sums, r.axis + r.outs);
  return r;
}
void add_walk(const Call& c, const Sides& s, const Walk& outs, const Walk& sums, float scale, bool acc) {
  constexpr idx kLong = 32;
  device::Walk r = walk_of(c, outs, sums);
  r.x = read(s.x, c.members, s.x_size);
  r.y = write(s.y, c.members, s.y_size);
  r.at_x = s.at_x;
  r.at_y = s.at_y;
  r.scale = scale;
  r.acc = acc;
  const bool is_long = r.sums >= kLong;
  recorder().add(is_long ? Kernel::walk_long : Kernel::walk, r, r.members * r.n * (is_long ? 128 : 1));
}
// From argument 0 to the result.
Sides there(const Call& c) { return {c.x[0], c.y[0], c.arg_size(0), c.out_size()}; }
// From the result's gradient to that of argument 0.
Sides back(const Call& c, const Gradients& to) { return {c.dy[0], to.rows(0), c.out_size(), c.arg_size(0)}; }

// ---- sums and means over dims ------------------------------------------------------------------------------------

// Axes of x that stay, and those that are summed, with their places in y.
struct Reduced {
  Walk stay, sum;
  Reduced(const Dim& x, u32 over) {
    each_reduced(x, over, [&](idx n, idx sx, idx sy, bool summed) { (summed ? sum : stay).push(n, sx, sy); });
  }
};

void sum_forward(const Call& c, u32 over, float scale) {
  const Reduced r(*c.arg_dim[0], over);
  add_walk(c, there(c), r.stay, r.sum, scale, false);
}
void sum_backward(const Call& c, u32 over, float scale) {
  if (!c.dx[0].wanted()) return;
  Gradients to(c);
  add_walk(c, back(c, to), reduced_walk(*c.arg_dim[0], over).turned_round(), Walk(), scale, to.acc(0));
  to.done();
}
float per_output(const Call& c) { return static_cast<float>(c.arg_size(0) / c.out_size()); }

template <u32 kOver, bool kMean>
DeviceOp reduction() {
  return {[](const Call& c) { sum_forward(c, kOver, kMean ? 1.0f / per_output(c) : 1.0f); },
          [](const Call& c) { sum_backward(c, kOver, kMean ? 1.0f / per_output(c) : 1.0f); }};
}
const DeviceOpEntry sum_elems("sum_elems", reduction<kAllDims, false>());
const DeviceOpEntry mean_elems("mean_elems", reduction<kAllDims, true>());
const DeviceOpEntry sum_batches("sum_batches", reduction<kBatchBit, false>());
const DeviceOpEntry mean_batches("mean_batches", reduction<kBatchBit, true>());

// Key words: number of dims, the dims, with the batch or not; of means a divisor.
u32 over_key(const Word* key) {
  u32 over = key[1 + key[0].i].i ? kBatchBit : 0;
  for (i32 i = 0; i < key[0].i; ++i) over |= 1u << key[1 + i].i;
  return over;
}
float mean_factor(const Call& c) {
  const float n = c.key[2 + c.key[0].i].f;
  return 1.0f / (n > 0 ? n : per_output(c));
}
const DeviceOpEntry sum_dims("_sum_dims", {[](const Call& c) { sum_forward(c, over_key(c.key), 1.0f); },
                                           [](const Call& c) { sum_backward(c, over_key(c.key), 1.0f); }});
const DeviceOpEntry mean_dims("_mean_dims", {[](const Call& c) { sum_forward(c, over_key(c.key), mean_factor(c)); },
                                             [](const Call& c) { sum_backward(c, over_key(c.key), mean_factor(c)); }});

void std_forward(const Call& c) {
  const Reduced axes(*c.arg_dim[0], over_key(c.key));
  device::Deviation r{};
  r.walk = walk_of(c, axes.stay, axes.sum);
  r.walk.x = read_argument(c, 0);
  r.walk.y = write_output(c, 0);
  r.mean = write_output(c, 1);
  recorder().add(Kernel::deviation, r, r.walk.members * r.walk.n * 128);
}
void std_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  Gradients to(c);
  const Walk all = reduced_walk(*c.arg_dim[0], over_key(c.key));
  device::DeviationBack r{};
  r.x = read_argument(c, 0);
  r.y = read_output(c, 0);
  r.mean = read_output(c, 1);
  r.dy = read_gradient(c, 0);
  r.dx = to.write(0);
  r.members = c.members;
  r.n = static_cast<idx>(c.arg_size(0));
  r.axes = all.axes();
  list_axes(all, r.axis);
  r.acc = to.acc(0);
  r.scale = 1.0f / per_output(c);
  recorder().add(Kernel::deviation_back, r, r.members * r.n);
  to.done();
}
const DeviceOpEntry std_dims("_std_dims", {std_forward, std_backward});

// ---- transposes ----------------------------------------------------------------------------------------------------

// Key words: number of dims, then for each dim of the result the dim of x that it is.
Walk transposed(const Call& c) {
  return transposed_walk(*c.arg_dim[0], c.out_dim[0], [&](u32 i) { return c.key[1 + i].i; });
}
void transpose_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  Gradients to(c);
  add_walk(c, back(c, to), transposed(c).turned_round(), Walk(), 1.0f, to.acc(0));
  to.done();
}
const DeviceOpEntry transpose("_transpose",
                              {[](const Call& c) { add_walk(c, there(c), transposed(c), Walk(), 1.0f, false); },
                               transpose_backward});

// ---- ranges, slices, picks: of each member from a place of its own -------------------------------------------------

// Axes of the part that is taken, and where it begins, by member.
struct Part {
  Walk axes;
  Vec<i64> begin;
};
// For each dim of x, and the mini-batch: how far apart, how many, and the first of a member.
template <class Step, class Count, class First>
Part part_of(const Call& c, Step step, Count count, First first) {
  const Dim& x = *c.arg_dim[0];
  Part p;
  for (int m = 0; m < c.members; ++m) p.begin.push_back(0);
  idx sx = 1, sy = 1;
  for (u32 i = 0; i <= x.nd; ++i) {
    const idx size = i < x.nd ? x.d[i] : x.bd, n = count(i, size);
    p.axes.push(n, step(i) * sx, sy);
    for (int m = 0; m < c.members; ++m) p.begin[static_cast<std::size_t>(m)] += first(m, i, size) * sx;
    sx *= size;
    sy *= n;
  }
  return p;
}
Part range_part(const Call& c) {  // key words: length, dim; member word: start
  const u32 d = c.key[1].u;
  return part_of(
      c, [](u32) { return idx(1); }, [&](u32 i, idx size) { return i == d ? idx(c.key[0].i) : size; },
      [&](int m, u32 i, idx) { return i == d ? idx(c.member[m][0].i) : 0; });
}
Part slice_part(const Call& c) {  // key words: k, k steps, k, k counts; member words: k, k starts
  const u32 k = c.key[0].u;
  return part_of(
      c, [&](u32 i) { return i < k ? idx(c.key[1 + i].i) : 1; },
      [&](u32 i, idx size) { return i < k ? idx(c.key[2 + k + i].i) : size; },
      [&](int m, u32 i, idx) { return i < k ? idx(c.member[m][1 + i].i) : 0; });
}
Part pick_part(const Call& c) {  // key word: dim; member word: index, from the end if it is negative
  const u32 d = c.key[0].u;
  return part_of(
      c, [](u32) { return idx(1); }, [&](u32 i, idx size) { return i == d ? 1 : size; },
      [&](int m, u32 i, idx size) {
        const idx at = c.member[m][0].i;
        return i != d ? 0 : at < 0 ? at + size : at;
      });
}

template <Part (*kPart)(const Call&)>
void part_forward(const Call& c) {
  const Part p = kPart(c);
  Sides s = there(c);
  s.at_x = stage(p.begin);
  add_walk(c, s, p.axes, Walk(), 1.0f, false);
}
template <Part (*kPart)(const Call&)>
void part_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const Part p = kPart(c);
  Gradients to(c);
  to.clear(0);
  Sides s = back(c, to);
  s.at_y = stage(p.begin);
  add_walk(c, s, p.axes.turned_round(), Walk(), 1.0f, true);
  to.done();
}
const DeviceOpEntry pick_range("_pick_range", {part_forward<range_part>, part_backward<range_part>});
const DeviceOpEntry slice("_slice", {part_forward<slice_part>, part_backward<slice_part>});
const DeviceOpEntry pick("_pick", {part_forward<pick_part>, part_backward<pick_part>});

}  // namespace
}  // namespace dnl::cuda
