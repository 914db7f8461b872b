// What a backend is: where numbers live and how a batched call is run.
//
// The executor speaks to a backend in plain data: addresses, which only the backend may follow, and Calls. A backend
// may be partial: supports() answers per op, and the executor refuses such a graph with a message that names op and
// backend. The CPU backend runs the kernels of the op entries, which define what is right; others are compared with it.
// Who may include: backends/, exec/, bindings/. Includes: op/op.h, base/arena.h.
#pragma once
#include "base/arena.h"
#include "op/op.h"

namespace dnl {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  virtual bool supports(OpId) const { return true; }
  // False: no numbers are produced (the null backend); values read as zeros.
  virtual bool computes() const { return true; }
  virtual MemorySource memory() const { return {}; }

  virtual void forward(const Call&) = 0;
  virtual void backward(const Call&) = 0;
  virtual void backward_shared(const Call&, int wrt) = 0;

  virtual void fill(std::size_t n, float v, float* y) = 0;
  // k rows of n floats from one layout to another; adding allows rows of `to` to repeat.
  virtual void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) = 0;
  virtual void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) = 0;
  virtual bool all_finite(std::size_t n, const float* x) = 0;
  // How many are not zero.
  virtual std::size_t count_nonzero(std::size_t n, const float* x) = 0;
  // Device to host, for reading values.
  virtual void download(std::size_t n, const float* from, float* to) = 0;
};

// Registration by static object: `static RegisterBackend r("cpu", [] { return &instance; });`
struct RegisterBackend {
  RegisterBackend(const char* name, Backend* backend);
};
// Throws Error(Value) naming those there are.
Backend* backend_by_name(const std::string& name);

}  // namespace dnl
