// Errors of the engine: one exception type with a kind, thrown where a contract is broken.
//
// The bindings turn each kind into one Python exception (see bindings/errors.h). Messages start with the
// op or function in brackets and say what was expected and what was given. Includes: standard library only.
#pragma once
#include <stdexcept>
#include <string>

namespace dnl {

enum class ErrorKind : int {
  Value,      // a wrong argument: shapes that do not fit, a bad option -> ValueError
  Index,      // an index out of range -> IndexError
  Stale,      // an expression of a graph that is gone -> StaleExpressionError
  Memory,     // wanted, used and limit are in the message -> MemoryError
  NotFinite,  // NaN or infinity found by a validity check -> RuntimeError
  Runtime,    // the call makes no sense in this state -> RuntimeError
  Internal    // a bug of ours -> InternalError, asks for a report
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

[[noreturn]] inline void fail(ErrorKind kind, const std::string& what) { throw Error(kind, what); }
[[noreturn]] inline void fail_value(const std::string& what) { throw Error(ErrorKind::Value, what); }
[[noreturn]] inline void fail_index(const std::string& what) { throw Error(ErrorKind::Index, what); }

#define DNL_INTERNAL(cond, what)                                                             \
  do {                                                                                       \
    if (!(cond)) ::dnl::fail(::dnl::ErrorKind::Internal, std::string("[engine] ") + (what)); \
  } while (0)

}  // namespace dnl
