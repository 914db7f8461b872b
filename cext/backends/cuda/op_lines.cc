// Ops along one dim: softmax and its family, losses by label, maxima and their places, running sums, layer norm.
#include "backends/cuda/ops.h"
#include "base/walk.h"

namespace dnl::cuda {
namespace {

// The lines along dim d of argument 0. `threads` of a line work on it.
device::Lines lines_along(const Call& c, u32 d) {
  const dnl::Axis a(*c.arg_dim[0], d);
  device::Lines r{};
  r.members = c.members;
  r.n = a.n;
  r.inner = a.inner;
  r.lines = a.inner * a.outer;
  return r;
}
// Lines are all of an element of the mini-batch, or its columns.
device::Lines lines_of(const Call& c, idx n) {
  device::Lines r{};
  r.members = c.members;
  r.n = n;
  r.inner = 1;
  r.lines = static_cast<idx>(c.arg_size(0)) / n;
  return r;
}
void add_by_blocks(Kernel kernel, const device::Lines& r) { recorder().add(kernel, r, r.members * r.lines * 128); }
void add_by_numbers(Kernel kernel, const device::Lines& r) { recorder().add(kernel, r, r.members * r.lines * r.n); }
void add_by_lines(Kernel kernel, const device::Lines& r) { recorder().add(kernel, r, r.members * r.lines); }

// Lists of member words, one behind the other, after where each begins and the last one ends.
u64 stage_lists(const Call& c) {
  Vec<i32> words;
  i32 at = c.members + 1;
  for (int m = 0; m < c.members; ++m) {
    words.push_back(at);
    at += c.member[m][0].i;
  }
  words.push_back(at);
  for (int m = 0; m < c.members; ++m)
    for (i32 k = 0; k < c.member[m][0].i; ++k) words.push_back(c.member[m][1 + k].i);
  return stage(words);
}
// As many words of each member as it has lines.
u64 stage_labels(const Call& c, idx lines) {
  Vec<i32> words;
  for (int m = 0; m < c.members; ++m)
    for (idx k = 0; k < lines; ++k) words.push_back(c.member[m][1 + k].i);
  return stage(words);
}

// The gradient of argument 0, in one record.
template <class Add>
void give(const Call& c, device::Lines r, Add add) {
  Gradients to(c);
  r.dx = to.write(0);
  r.acc = to.acc(0);
  add(r);
  to.done();
}

// ---- softmax -------------------------------------------------------------------------------------------------------

template <bool kLogarithm>
void softmax_forward(const Call& c) {
  device::Lines r = lines_along(c, c.key[0].u);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  r.what = kLogarithm;
  add_by_blocks(Kernel::softmax, r);
}
template <bool kLogarithm>
void softmax_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_along(c, c.key[0].u), [&](device::Lines& r) {
    r.y = read_output(c, 0);
    r.dy = read_gradient(c, 0);
    r.what = kLogarithm;
    add_by_blocks(Kernel::softmax_back, r);
  });
}
const DeviceOpEntry softmax("softmax", {softmax_forward<false>, softmax_backward<false>});
const DeviceOpEntry log_softmax("log_softmax", {softmax_forward<true>, softmax_backward<true>});

void restricted_forward(const Call& c) {
  device::Lines r = lines_of(c, c.arg_dim[0]->rows());
  r.words = stage_lists(c);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  add_by_blocks(Kernel::restricted, r);
}
void restricted_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_of(c, c.arg_dim[0]->rows()), [&](device::Lines& r) {
    r.words = stage_lists(c);
    r.y = read_output(c, 0);
    r.dy = read_gradient(c, 0);
    add_by_blocks(Kernel::restricted_back, r);
  });
}
const DeviceOpEntry restricted("_log_softmax_restricted", {restricted_forward, restricted_backward});

// ---- logsumexp, the loss by label ----------------------------------------------------------------------------------

void logsumexp_forward(const Call& c) {
  device::Lines r = lines_along(c, c.key[0].u);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  add_by_blocks(Kernel::log_sum_exp, r);
}
void logsumexp_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_along(c, c.key[0].u), [&](device::Lines& r) {
    r.x = read_argument(c, 0);
    r.z = read_output(c, 0);
    r.dy = read_gradient(c, 0);
    add_by_numbers(Kernel::log_sum_exp_back, r);
  });
}
const DeviceOpEntry logsumexp_dim("logsumexp_dim", {logsumexp_forward, logsumexp_backward});

void pick_loss_forward(const Call& c) {
  device::Lines r = lines_of(c, c.arg_dim[0]->rows());
  r.words = stage_labels(c, r.lines);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  r.z = write_output(c, 1);
  add_by_blocks(Kernel::log_sum_exp, r);
}
void pick_loss_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_of(c, c.arg_dim[0]->rows()), [&](device::Lines& r) {
    r.words = stage_labels(c, r.lines);
    r.x = read_argument(c, 0);
    r.z = read_output(c, 1);
    r.dy = read_gradient(c, 0);
    add_by_numbers(Kernel::log_sum_exp_back, r);
  });
}
const DeviceOpEntry pick_loss("pickneglogsoftmax", {pick_loss_forward, pick_loss_backward});

// ---- margin losses -------------------------------------------------------------------------------------------------

device::Lines hinge_lines(const Call& c, u32 d) {
  device::Lines r = d == 0 ? lines_of(c, c.arg_dim[0]->rows()) : lines_along(c, 1);
  r.words = stage_labels(c, r.lines);
  Vec<float> margins;
  for (int m = 0; m < c.members; ++m) margins.push_back(c.member[m][1 + c.member[m][0].u].f);
  r.numbers = stage(margins);
  r.x = read_argument(c, 0);
  return r;
}
void hinge_forward(const Call& c, u32 d) {
  device::Lines r = hinge_lines(c, d);
  r.y = write_output(c, 0);
  add_by_blocks(Kernel::hinge, r);
}
void hinge_backward(const Call& c, u32 d) {
  if (!c.dx[0].wanted()) return;
  Gradients to(c);
  device::Lines r = hinge_lines(c, d);
  r.dy = read_gradient(c, 0);
  r.dx = to.write(0);
  r.acc = to.acc(0);
  add_by_blocks(Kernel::hinge_back, r);
  to.done();
}
const DeviceOpEntry hinge("hinge",
                          {[](const Call& c) { hinge_forward(c, 0); }, [](const Call& c) { hinge_backward(c, 0); }});
const DeviceOpEntry hinge_dim("hinge_dim", {[](const Call& c) { hinge_forward(c, c.key[0].u); },
                                            [](const Call& c) { hinge_backward(c, c.key[0].u); }});

// ---- sparsemax -----------------------------------------------------------------------------------------------------

void sparsemax_forward(const Call& c) {
  device::Lines r = lines_of(c, c.arg_dim[0]->rows());
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  add_by_blocks(Kernel::sparsemax, r);
}
void sparsemax_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_of(c, c.arg_dim[0]->rows()), [&](device::Lines& r) {
    r.y = read_output(c, 0);
    r.dy = read_gradient(c, 0);
    add_by_blocks(Kernel::sparsemax_back, r);
  });
}
const DeviceOpEntry sparsemax("sparsemax", {sparsemax_forward, sparsemax_backward});

void sparsemax_loss_forward(const Call& c) {
  device::Lines r = lines_of(c, c.arg_dim[0]->rows());
  r.words = stage_lists(c);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  r.z = write_output(c, 1);
  add_by_blocks(Kernel::sparsemax_loss, r);
}
void sparsemax_loss_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_of(c, c.arg_dim[0]->rows()), [&](device::Lines& r) {
    r.words = stage_lists(c);
    r.z = read_output(c, 1);
    r.dy = read_gradient(c, 0);
    add_by_numbers(Kernel::sparsemax_loss_back, r);
  });
}
const DeviceOpEntry sparsemax_loss("sparsemax_loss", {sparsemax_loss_forward, sparsemax_loss_backward});

// ---- norms ---------------------------------------------------------------------------------------------------------

void norm_forward(const Call& c) {
  device::Lines r = lines_of(c, static_cast<idx>(c.arg_dim[0]->batch_size()));
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  add_by_blocks(Kernel::line_norm, r);
}
void norm_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_of(c, static_cast<idx>(c.arg_dim[0]->batch_size())), [&](device::Lines& r) {
    r.x = read_argument(c, 0);
    r.y = read_output(c, 0);
    r.dy = read_gradient(c, 0);
    r.what = 1;
    add_by_numbers(Kernel::scale_lines, r);
  });
}
const DeviceOpEntry l2_norm("l2_norm", {norm_forward, norm_backward});

// ---- dropout of batch elements -------------------------------------------------------------------------------------

void dropout_forward(const Call& c) {
  for (int m = 0; m < c.members; ++m) {
    const float keep = 1.0f - c.member[m][0].f;
    const u64 seed = c.member[m][1].u | static_cast<u64>(c.member[m][2].u) << 32;
    table().random_mask(static_cast<idx>(c.out_size(1)), seed, keep, keep > 0 ? 1.0f / keep : 0.0f, c.y[1][m]);
  }
  device::Lines r = lines_of(c, static_cast<idx>(c.arg_dim[0]->batch_size()));
  r.x = read_argument(c, 0);
  r.z = read_output(c, 1);
  r.dx = write_output(c, 0);
  add_by_numbers(Kernel::scale_lines, r);
}
void dropout_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_of(c, static_cast<idx>(c.arg_dim[0]->batch_size())), [&](device::Lines& r) {
    r.x = read_gradient(c, 0);
    r.z = read_output(c, 1);
    add_by_numbers(Kernel::scale_lines, r);
  });
}
const DeviceOpEntry dropout_batch("dropout_batch", {dropout_forward, dropout_backward});

// ---- places --------------------------------------------------------------------------------------------------------

template <bool kLargest>
void best_forward(const Call& c) {
  device::Lines r = lines_along(c, c.key[0].u);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  r.z = write_output(c, 1);
  r.what = kLargest;
  add_by_lines(Kernel::best, r);
}
// What goes back to the places that were kept, from lines along dim d.
void places_backward(const Call& c, u32 d, Kernel kernel, i32 what) {
  if (!c.dx[0].wanted()) return;
  Gradients to(c);
  to.clear(0);
  device::Lines r = lines_along(c, d);
  r.z = read_output(c, 1);
  r.dy = read_gradient(c, 0);
  r.dx = to.write(0);
  r.what = what;
  add_by_lines(kernel, r);
  to.done();
}
void best_backward(const Call& c) { places_backward(c, c.key[0].u, Kernel::best_back, 0); }
const DeviceOpEntry max_dim("max_dim", {best_forward<true>, best_backward});
const DeviceOpEntry min_dim("min_dim", {best_forward<false>, best_backward});

const DeviceOpEntry kmax("kmax_pooling",
                         {[](const Call& c) {
                            device::Lines r = lines_along(c, c.key[1].u);
                            r.x = read_argument(c, 0);
                            r.y = write_output(c, 0);
                            r.z = write_output(c, 1);
                            r.what = c.key[0].i;
                            add_by_lines(Kernel::best_few, r);
                          },
                          [](const Call& c) { places_backward(c, c.key[1].u, Kernel::best_few_back, c.key[0].i); }});

void argmax_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  const idx n = static_cast<idx>(c.out_size());
  if (c.key[0].i)
    (c.acc[0] ? table().add_rows : table().copy_rows)(c.members, n, c.dy[0], c.dx[0]);
  else if (!c.acc[0])
    fill_rows(c.members, n, 0.0f, c.dx[0]);
}
const DeviceOpEntry argmax("_argmax", {[](const Call& c) {
                                         device::Lines r = lines_along(c, c.key[1].u);
                                         r.x = read_argument(c, 0);
                                         r.y = write_output(c, 0);
                                         add_by_lines(Kernel::argmax, r);
                                       },
                                       argmax_backward});

void cumsum_forward(const Call& c) {
  device::Lines r = lines_along(c, c.key[0].u);
  r.x = read_argument(c, 0);
  r.y = write_output(c, 0);
  add_by_lines(Kernel::running_sums, r);
}
void cumsum_backward(const Call& c) {
  if (!c.dx[0].wanted()) return;
  give(c, lines_along(c, c.key[0].u), [&](device::Lines& r) {
    r.x = read_gradient(c, 0);
    r.y = r.dx;
    r.what = 1;
    add_by_lines(Kernel::running_sums, r);
  });
}
const DeviceOpEntry cumsum("cumsum", {cumsum_forward, cumsum_backward});

// ---- layer norm ----------------------------------------------------------------------------------------------------

idx element_size(const Call& c, int j) { return static_cast<idx>(c.arg_dim[j]->batch_size()); }

void layer_norm_forward(const Call& c) {
  device::LayerNorm r{};
  r.x = read_argument(c, 0);
  r.g = read_argument(c, 1);
  r.b = read_argument(c, 2);
  r.y = write_output(c, 0);
  r.stats = write_output(c, 1);
  r.members = c.members;
  r.batch = c.out_dim[0].bd;
  r.n = static_cast<idx>(c.out_dim[0].batch_size());
  r.n_g = element_size(c, 1);
  r.n_b = element_size(c, 2);
  r.step_x = step_of(c, 0);
  r.step_g = step_of(c, 1);
  r.step_b = step_of(c, 2);
  recorder().add(Kernel::layer_norm, r, r.members * r.batch * 128);
}
// Adds the gradient of gain (argument 1) or bias (2) to rows `to`, or to one row for all members.
void layer_norm_weight(const Call& c, int j, const Rows& to) {
  device::LayerNormWeight r{};
  r.x = read_argument(c, 0);
  r.stats = read_output(c, 1);
  r.dy = read_gradient(c, 0);
  r.to = write(to, c.shared[j] ? 1 : c.members, c.arg_size(j));
  r.members = c.members;
  r.batch = c.out_dim[0].bd;
  r.n = static_cast<idx>(c.out_dim[0].batch_size());
  r.size = element_size(c, j);
  r.own = c.arg_dim[j]->bd;
  r.step_x = step_of(c, 0);
  r.gain = j == 1;
  r.for_all = c.shared[j];
  recorder().add(Kernel::layer_norm_weight, r, static_cast<idx>(c.arg_size(j)) * (c.shared[j] ? 1 : c.members) * 128);
}
void layer_norm_backward(const Call& c) {
  Gradients to(c);
  for (int j = 1; j <= 2; ++j)
    if (!c.shared[j] && to.wanted(j)) {
      to.clear(j);
      layer_norm_weight(c, j, to.rows(j));
    }
  if (to.wanted(0)) {
    device::LayerNormBack r{};
    r.x = read_argument(c, 0);
    r.g = read_argument(c, 1);
    r.stats = read_output(c, 1);
    r.dy = read_gradient(c, 0);
    r.dx = to.write(0);
    r.members = c.members;
    r.batch = c.out_dim[0].bd;
    r.n = static_cast<idx>(c.out_dim[0].batch_size());
    r.n_g = element_size(c, 1);
    r.step_x = step_of(c, 0);
    r.step_g = step_of(c, 1);
    r.acc = to.acc(0);
    recorder().add(Kernel::layer_norm_back, r, r.members * r.batch * 128);
  }
  to.done();
}
const DeviceOpEntry layer_norm("layer_norm", {layer_norm_forward, layer_norm_backward,
                                              [](const Call& c, int wrt) { layer_norm_weight(c, wrt, c.dx[wrt]); }});

}  // namespace
}  // namespace dnl::cuda
