// Ops over lists of arguments, number by number, and over segments of columns: sums, maxima, logsumexp.
#include "backends/cuda/ops.h"

namespace dnl::cuda {
namespace {

// The arguments, and of which members how many take part (member word 0), times what (member word 1).
device::List list_of(const Call& c, device::ListKind what, bool counted, bool factored) {
  device::List r{};
  // Addresses of all members for each argument and, in backward, its gradient; a few numbers for each; and the rest.
  std::size_t lists = 4;
  for (int j = 0; j < c.nargs; ++j) lists += (c.x[j].ptr ? 1u : 0u) + (c.dx && c.dx[j].ptr ? 1u : 0u);
  recorder().make_room(lists * static_cast<std::size_t>(c.members + 2) * sizeof(u64) +
                       static_cast<std::size_t>(c.nargs) * 64 + 64);
  Vec<device::Rows> args;
  Vec<i64> step;
  for (int j = 0; j < c.nargs; ++j) {
    args.push_back(read_argument(c, j));
    step.push_back(step_of(c, j));
  }
  Vec<i32> counts;
  Vec<float> factors;
  for (int m = 0; m < c.members; ++m) {
    if (counted) counts.push_back(c.member[m][0].i);
    if (factored) factors.push_back(c.member[m][1].f);
  }
  r.args = stage(args);
  r.step = stage(step);
  r.counts = stage(counts);
  r.factors = stage(factors);
  r.members = c.members;
  r.batch = c.out_dim[0].bd;
  r.n = static_cast<idx>(c.out_dim[0].batch_size());
  r.nargs = c.nargs;
  r.what = what;
  r.scale = 1.0f;
  return r;
}
idx numbers(const device::List& r) { return r.members * r.batch * r.n; }

void list_forward(const Call& c, device::List r) {
  constexpr int kLong = 32;
  r.y = write_output(c, 0);
  const bool is_long = r.what == device::kListSum && r.nargs >= kLong;
  recorder().add(is_long ? Kernel::list_sum : Kernel::list, r, numbers(r) * (is_long ? 128 : 1));
}
void list_backward(const Call& c, const Gradients& to, device::List r) {
  Vec<device::Rows> rows;
  Vec<i32> acc;
  for (int j = 0; j < c.nargs; ++j) {
    rows.push_back(to.wanted(j) ? to.write(j) : device::Rows{});
    acc.push_back(to.acc(j));
  }
  r.gradients = stage(rows);
  r.acc = stage(acc);
  r.dy = read_gradient(c, 0);
  if (r.what == device::kListSum) {
    recorder().add(Kernel::list_sum_back, r, numbers(r) * c.nargs);
  } else {
    r.y = read_output(c, 0);
    recorder().add(Kernel::list_back, r, r.members * r.n);
  }
  to.done();
}

template <device::ListKind kWhat, bool kCounted, bool kFactored, bool kMean>
DeviceOp list_op() {
  return {[](const Call& c) {
            device::List r = list_of(c, kWhat, kCounted, kFactored);
            if (kMean) r.scale = 1.0f / static_cast<float>(c.nargs);
            list_forward(c, r);
          },
          [](const Call& c) {
            const Gradients to(c);  // first: it may record something
            device::List r = list_of(c, kWhat, kCounted, kFactored);
            if (kMean) r.scale = 1.0f / static_cast<float>(c.nargs);
            list_backward(c, to, r);
          }};
}
const DeviceOpEntry esum("esum", list_op<device::kListSum, false, false, false>());
const DeviceOpEntry average("average", list_op<device::kListSum, false, false, true>());
const DeviceOpEntry sum_some("_sum_some", list_op<device::kListSum, true, true, false>());
const DeviceOpEntry emax("emax", list_op<device::kListMax, false, false, false>());
const DeviceOpEntry max_some("_max_some", list_op<device::kListMax, true, false, false>());
const DeviceOpEntry logsumexp("logsumexp", list_op<device::kListLogSumExp, false, false, false>());

// ---- segments ------------------------------------------------------------------------------------------------------

// Key word: number of segments, and for sums whether they are means. Member words: N ids.
device::Segments segments_of(const Call& c) {
  const Dim& x = *c.arg_dim[0];
  device::Segments r{};
  r.members = c.members;
  r.outer = x.bd;
  r.n = x.d[x.nd - 1];
  r.segments = c.key[0].i;
  r.inner = static_cast<idx>(c.out_dim[0].batch_size()) / r.segments;
  Vec<u32> begin, order;
  for (int m = 0; m < c.members; ++m) {
    const Word* ids = c.member[m] + 1;
    const std::size_t from = begin.size();
    begin.resize(from + static_cast<std::size_t>(r.segments) + 1);
    std::fill(begin.data() + from, begin.end(), 0u);
    for (idx k = 0; k < r.n; ++k) ++begin[from + ids[k].u + 1];
    for (idx s = 0; s < r.segments; ++s)
      begin[from + static_cast<std::size_t>(s) + 1] += begin[from + static_cast<std::size_t>(s)];
    Vec<u32> next;
    for (idx s = 0; s < r.segments; ++s) next.push_back(begin[from + static_cast<std::size_t>(s)]);
    const std::size_t at = order.size();
    order.resize(at + static_cast<std::size_t>(r.n));
    for (idx k = 0; k < r.n; ++k) order[at + next[ids[k].u]++] = static_cast<u32>(k);
  }
  r.begin = stage(begin);
  r.order = stage(order);
  return r;
}
void add_segments(Kernel kernel, const device::Segments& r) {
  recorder().add(kernel, r, r.members * r.outer * r.segments * r.inner);
}
void segments_forward(const Call& c, Kernel kernel, bool mean) {
  device::Segments r = segments_of(c);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  r.mean = mean;
  add_segments(kernel, r);
}
void segments_backward(const Call& c, Kernel kernel, bool mean) {
  if (!c.dx[0].wanted()) return;
  Gradients to(c);
  device::Segments r = segments_of(c);
  r.x = read_argument(c, 0);
  r.y = read_output(c, 0);
  r.dy = read_gradient(c, 0);
  r.dx = to.write(0);
  r.mean = mean;
  r.acc = to.acc(0);
  add_segments(kernel, r);
  to.done();
}
const DeviceOpEntry segment_sum("_segment_sum",
                                {[](const Call& c) { segments_forward(c, Kernel::segment_sum, c.key[1].i != 0); },
                                 [](const Call& c) {
                                   segments_backward(c, Kernel::segment_sum_back, c.key[1].i != 0);
                                 }});
const DeviceOpEntry segment_max("_segment_max",
                                {[](const Call& c) { segments_forward(c, Kernel::segment_max, false); },
                                 [](const Call& c) { segments_backward(c, Kernel::segment_max_back, false); }});

}  // namespace
}  // namespace dnl::cuda
