// What a backend is: where numbers live and how a batched call is run.
//
// The executor speaks to a backend in plain data: addresses, which only the backend may follow, and Calls. A backend
// may be partial: supports() answers per op, and the executor refuses such a graph with a message that names op and
// backend. The CPU backend runs the kernels of the op entries, which define what is right; others are compared with it.
// Rows that are listed are listed on the host; the addresses in the lists are the backend's. One call does many rows or
// tensors: on a device a call is a launch. Who may include: backends/, graph/, exec/, bindings/. Includes: op/op.h,
// op/update.h, op/intra_op.h, base/arena.h.
#pragma once
#include <memory>

#include "base/arena.h"
#include "base/product_counts.h"
#include "op/intra_op.h"
#include "op/op.h"
#include "op/update.h"

namespace dnl {

// n numbers in a backend's memory.
struct Numbers {
  const float* at;
  std::size_t n;
};

// What a backend with memory of its own has done since the process began, as far as it costs a device time.
struct BackendCounts {
  u64 calls = 0;      // batched ones, forward and backward
  u64 row_calls = 0;  // that fill, copy, add, scale or swap rows
  u64 updates = 0;
  u64 uploads = 0, uploaded = 0;      // how many, and bytes
  u64 downloads = 0, downloaded = 0;  // sums and checks that the host waits for are counted with the first
  u64 launches = 0, waits = 0;        // of a device: kernels, and how often the host waited for it
  u64 products = 0;                   // of the calls' products: those that a library of the device made
  u64 on_host = 0;                    // of the calls: those that ran on the host, for want of code for the device
};

// What a backend keeps for the calls of one backward pass, which threads may run at the same time. This one keeps
// nothing.
class PassCache {
 public:
  virtual ~PassCache() = default;
  // Before a pass, in one thread: what was kept of other weights goes.
  virtual void begin() {}
  virtual void release() {}
  virtual u64 count() const { return 0; }

  Transposes* transposes = nullptr;  // Call::transposes
};

class Backend {
 public:
  explicit Backend(bool memory_of_host) : host_memory(memory_of_host) {}
  virtual ~Backend() = default;
  // Its memory is the host's: whoever has an address may follow it.
  const bool host_memory;
  virtual const char* name() const = 0;
  virtual bool supports(OpId) const { return true; }
  // Whether calls of an op run on the host, for want of code for the device (BackendCounts::on_host).
  virtual bool on_host(OpId) const { return false; }
  // False: no numbers are produced (the null backend); values read as zeros.
  virtual bool computes() const { return true; }
  virtual BackendCounts counts() const { return {}; }
  // Of the calls of this thread so far.
  virtual ProductCounts product_counts() const { return {}; }
  virtual MemorySource memory() const { return {}; }
  // For each executor.
  virtual std::unique_ptr<PassCache> pass_cache() { return std::make_unique<PassCache>(); }
  // For each runner; null: threads do not share calls.
  virtual std::unique_ptr<IntraOp> intra_op() { return nullptr; }

  virtual void forward(const Call&) = 0;
  virtual void backward(const Call&) = 0;
  virtual void backward_shared(const Call&, int wrt) = 0;

  // k rows of n floats get one number everywhere.
  virtual void fill_rows(std::size_t k, std::size_t n, float v, Rows to) = 0;
  void fill(std::size_t n, float v, float* y) { fill_rows(1, n, v, Rows{y, 0, nullptr}); }
  // k rows of n floats from one layout to another; adding allows rows of `to` to repeat.
  virtual void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) = 0;
  virtual void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) = 0;
  // Row m is multiplied by factor[m], which the host has.
  virtual void scale_rows(std::size_t k, std::size_t n, const float* factor, Rows rows) = 0;
  // Rows change places, one pair after another: a row of `b` may occur several times.
  virtual void swap_rows(std::size_t k, std::size_t n, Rows a, Rows b) = 0;
  // The first of k arrays that has NaN or infinity; k if none has.
  virtual std::size_t first_not_finite(std::size_t k, const Numbers* arrays) = 0;
  // Of all numbers of k arrays, each summed up in double and added in order. NaN or infinite when one of them is.
  virtual double sum_squares(std::size_t k, const Numbers* arrays) = 0;
  // Clipping without a wait: to[0] gets the factor that brings the norm of k arrays down to `most`, NaN where the norm
  // is not finite, and to[1] the norm. False: the host had better have sum_squares() and reckon itself.
  virtual bool clip_factor(std::size_t k, const Numbers* arrays, double most, float* to) {
    (void)k, (void)arrays, (void)most, (void)to;
    return false;
  }
  // One step of a rule over k tensors, which do not overlap. Threads may call it for parts of one step.
  virtual void update(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all) = 0;
  // To the host, and from it.
  virtual void download(std::size_t n, const float* from, float* to) = 0;
  // The same, but they may come as late as the next download().
  virtual void download_later(std::size_t n, const float* from, float* to) { download(n, from, to); }
  virtual void upload(std::size_t n, const float* from, float* to) = 0;
};

// Registration by static object: `static RegisterBackend r("cpu", [] { return &instance; });`
struct RegisterBackend {
  RegisterBackend(const char* name, Backend* backend);
};
// Throws Error(Value) naming those there are.
Backend* backend_by_name(const std::string& name);
// The CPU's: for numbers that lie on the host.
Backend& host_backend();

}  // namespace dnl
