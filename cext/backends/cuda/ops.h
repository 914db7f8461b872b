// Ops that have device code of their own: a whole call is a record or two, however many members it has.
//
// Their entries stand in op_*.cc, and register themselves as those of the CPU do. An op without one runs by the kernel
// table, if it is written in kernels (OpDef::in_kernels), or on the host. Members are read and written side by side, so
// gradients whose rows repeat are asked for by way of Gradients.
// Who may include: backends/cuda. Includes: table.h, op/op.h.
#pragma once
#include "backends/cuda/table.h"
#include "op/op.h"

namespace dnl::cuda {

struct DeviceOp {
  void (*forward)(const Call&);
  void (*backward)(const Call&) = nullptr;
  void (*backward_shared)(const Call&, int wrt) = nullptr;
};
// Registration, at namespace scope: const DeviceOpEntry max_dim("max_dim", {forward, backward});
struct DeviceOpEntry {
  DeviceOpEntry(const char* name, const DeviceOp& op);
};
// That of an op; null: it has none.
const DeviceOp* device_op(const OpDef& op);
// Whether it runs on the host: for want of code, or because DYNET_LITE_CUDA_ON_HOST ("op,op") has it, for tests of that
// way and to find the kernel that a wrong number is of.
bool is_on_host(const OpDef& op);

// ---- what entries share --------------------------------------------------------------------------------------------

inline device::Rows read(const Rows& rows, idx k, std::size_t n) {
  return recorder().reads(rows, k, static_cast<idx>(n));
}
inline device::Rows write(const Rows& rows, idx k, std::size_t n) {
  return recorder().writes(rows, k, static_cast<idx>(n));
}
inline device::Rows read_argument(const Call& c, int j) { return read(c.x[j], c.members, c.arg_size(j)); }
inline device::Rows read_output(const Call& c, int o) { return read(c.y[o], c.members, c.out_size(o)); }
inline device::Rows write_output(const Call& c, int o) { return write(c.y[o], c.members, c.out_size(o)); }
inline device::Rows read_gradient(const Call& c, int o) { return read(c.dy[o], c.members, c.out_size(o)); }
// How far elements of a mini-batch are apart in argument j: 0 where one repeats.
inline idx step_of(const Call& c, int j) {
  return c.arg_dim[j]->bd == 1 ? 0 : static_cast<idx>(c.arg_dim[j]->batch_size());
}
template <class T>
u64 stage(const Vec<T>& list) {
  return list.empty() ? 0 : recorder().stage(list.data(), list.size() * sizeof(T));
}

// Where gradients of arguments go, for records that write all rows at once. Rows that meet others, of the same argument
// or another, lie apart and are added by done().
class Gradients {
 public:
  explicit Gradients(const Call& c);
  bool wanted(int j) const { return rows_[static_cast<std::size_t>(j)].wanted(); }
  // For a record that is about to be added.
  device::Rows write(int j) const;
  bool acc(int j) const { return acc_[static_cast<std::size_t>(j)]; }
  // Argument j is zero unless it is added to; it is added to from now on.
  void clear(int j);
  const Rows& rows(int j) const { return rows_[static_cast<std::size_t>(j)]; }
  void done() const;

 private:
  Vec<bool> which_meet() const;
  idx count(int j) const { return c_.shared[j] ? 1 : c_.members; }

  const Call& c_;
  Vec<Rows> rows_;
  Vec<bool> acc_, aside_;
};

}  // namespace dnl::cuda
