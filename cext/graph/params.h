// Parameters: numbers that outlive graphs, with their gradients.
//
// A Parameter is dense. A LookupTable is a table of rows of which a step touches few: its gradient is kept for touched
// rows only, in a compact array with one slot per touched row. Objects are shared (shared_ptr) between the Python
// objects, the graphs that use them and the trainers; they are freed with the last of these.
// All numbers lie in stores (graph/store.h): in the memory of the backend that works with them. A graph holds the
// address of a parameter's value there. Where graphs keep weights (for DyNet programs), an update in the
// middle of a graph's life writes to another buffer of the parameter, so that the graph goes on with the numbers it
// began with. Weight decay of a table is applied to a row when the row is next read (see LookupTable::settle): by who
// copies it, and before a graph runs that reads it where it lies. Who may include: graph/, exec/, bindings/. Includes:
// base/, graph/store.h.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/dim.h"
#include "graph/store.h"
#include "graph/versions.h"

namespace dnl {

// Whoever writes gradients (a backward pass, an update) holds this for its time, so that two threads whose graphs share
// parameters cannot corrupt them. Several are taken in order of address.
using GradientMutex = std::recursive_mutex;
using GradientLock = std::lock_guard<GradientMutex>;
// The several: listed, then held for a while.
class GradientLocks {
 public:
  void clear() { all_.clear(); }
  void add(GradientMutex& m) { all_.push_back(&m); }
  void lock() {
    std::sort(all_.begin(), all_.end(), std::less<GradientMutex*>());
    for (GradientMutex* m : all_) m->lock();  // recursive: one that occurs twice is locked twice
  }
  void unlock() {
    for (GradientMutex* m : all_) m->unlock();
  }
  void release() { all_.release(); }

 private:
  Vec<GradientMutex*> all_;
};

// The host reads the numbers of a parameter or table, as they are kept, or a gradient. It waits for backward passes of
// other threads, which may have old numbers in the place of these (exec/rewound.h).
void copy_numbers(GradientMutex& in_use, Store& numbers, float* to);

// Whether graphs keep the weights that they began with; for the whole process.
inline std::atomic<bool>& keep_weights_flag() {
  static std::atomic<bool> on{false};
  return on;
}
inline void keep_weights(bool on) { keep_weights_flag() = on; }

struct Parameter {
  GradientMutex in_use;
  Dim dim;
  Store value;           // column-major
  Store grad;            // always valid; zero after an update
  bool updated = true;   // false: frozen, trainers skip it and no gradient is kept
  bool touched = false;  // gradient may be non-zero
  u64 grad_serial = 0;   // another one after each change of the gradient
  Versions before;       // numbers that nodes read which ran before a change

  // How many graphs have read the numbers of a buffer, and may go on with them.
  using Readers = std::atomic<u32>;
  // A buffer that takes turns with value: of before, or free.
  struct Other {
    Store numbers;
    std::unique_ptr<Readers> own = std::make_unique<Readers>(0);
    Readers* readers = own.get();  // they go with the numbers
  };
  Readers first{0};
  std::atomic<Readers*> readers{&first};  // of value
  std::vector<Other> others;

  explicit Parameter(const Dim& d) : dim(d) {
    value.assign_zeros(d.size());
    grad.assign_zeros(d.size());
  }
  std::size_t size() const { return value.size(); }
  void grad_changed() { ++grad_serial; }
  bool is_read() const { return *readers.load() != 0; }
  // The next update must not write to `value`: a graph reads it.
  bool must_turn() const { return keep_weights_flag() && is_read(); }
  // Puts a buffer that no graph reads last, for new numbers.
  void make_other();
  Store& other() { return others.back().numbers; }
  // It holds them.
  void turn() {
    std::swap(value, other());
    others.back().readers = readers.exchange(others.back().readers);
  }
  // The host will overwrite the numbers.
  void keep_numbers();
  // The same where a graph has read them and keeps the weights that it began with.
  void leave_numbers() {
    if (!must_turn()) return keep_numbers();
    make_other();
    turn();
  }
  // The host overwrites all numbers, `leave`: by leave_numbers(). It waits as copy_numbers() does, here and below.
  void overwrite(const float* from, bool leave);
  void overwrite_grad(const float* from);
  void scale_grad(float factor);
  void clear_grad() {
    const GradientLock lock(in_use);
    if (touched) grad.zero();
    touched = false;
    grad_changed();
  }
};

struct LookupTable {
  GradientMutex in_use;
  Dim row_dim;  // of one row
  u32 rows;
  std::size_t row_size;
  Store value;  // row after row
  bool updated = true;
  Versions before;                         // numbers that nodes read which ran before a change
  std::atomic<bool> read_in_place{false};  // some node reads rows where they lie
  std::atomic<u64> changes{0};             // of numbers, by updates and by the host, so far

  // Sparse gradient: slot s holds the gradient of row touched[s].
  Vec<i32> slot_of_row;  // -1: not touched
  Vec<u32> touched;
  Store grad;  // of those slots that gradients() has been asked for

  LookupTable(const Dim& d, u32 n) : row_dim(d), rows(n), row_size(d.size()) {
    value.assign_zeros(row_size * n);
    slot_of_row.assign(n, -1);
  }
  std::size_t size() const { return value.size(); }
  float* row(Backend& b, u32 i) { return value.at(b) + i * row_size; }
  // The row that is asked for by this number, where `from_end` one below zero counts from the end. Throws Error(Index).
  u32 find_row(i64 number, bool from_end = false) const {
    const i64 row = number < 0 && from_end ? number + rows : number;
    if (row < 0 || row >= rows) no_row(number);
    return static_cast<u32>(row);
  }
  // The slot of a row.
  u32 slot(u32 i) {
    if (slot_of_row[i] >= 0) return static_cast<u32>(slot_of_row[i]);
    const u32 s = static_cast<u32>(touched.size());
    touched.push_back(i);  // first: it may fail
    slot_of_row[i] = static_cast<i32>(s);
    return s;
  }
  // The gradients of all slots, one after another, to be changed there; those of new slots are zero, or whatever lies
  // there where the caller will overwrite them (`zero` is false). Good until there are more slots.
  float* gradients(Backend& b, bool zero = true) {
    if (const std::size_t n = touched.size() * row_size; n != grad.size()) grad.grow(b, n, zero);
    return grad.write(b);
  }
  void clear_grad() {
    const GradientLock lock(in_use);
    for (u32 i : touched) slot_of_row[i] = -1;
    touched.clear();
    grad.clear();
  }

  // Lazy weight decay: every value still owes (log-)factor `decay_now - decay_of_row[i]`; see settle().
  double decay_now = 0.0;    // sum of log(1 - lambda) over all updates so far
  Vec<double> decay_of_row;  // empty until the first decay
  void decay(double log_factor) {
    if (decay_of_row.empty()) decay_of_row.assign(rows, decay_now);
    decay_now += log_factor;
    changes += log_factor != 0;
  }
  bool owes(u32 i) const { return !decay_of_row.empty() && decay_of_row[i] != decay_now; }
  // Brings n rows up to date; rows null: the first n. Every reader calls it first; costs one comparison when there is
  // no decay.
  void settle(Backend& b, const u32* ids, std::size_t n) {
    if (!decay_of_row.empty()) settle_owing(b, ids, n);
  }
  void settle_all(Backend& b) { settle(b, nullptr, rows); }
  void settle_owing(Backend& b, const u32* ids, std::size_t n);
  // The same for who holds the mutex. keep: nodes may need the numbers of before. remember: for take_back().
  void pay(Backend& b, const u32* ids, std::size_t n, bool keep, bool remember);
  // Several processes train the table, each with a copy, and update the same rows. What a row paid when one of them
  // read it is taken back before the update: paying in two parts rounds in another way.
  bool shared = false;
  void take_back(Backend& b);
  bool paid() const { return !paid_.rows.empty(); }
  // The host overwrites n rows, which owe nothing then; see Parameter.
  void overwrite(u32 first, u32 n, const float* from);
  // It reads n rows, brought up to date (of a shared table, only in the copy); ids null: the first n.
  void copy_rows(const u32* ids, std::size_t n, float* to);
  // All numbers as the last update left them. decay: decay_now and decay_of_row, or nothing (null) where there was
  // none.
  void copy_kept(float* to, Vec<double>& decay);
  void overwrite_kept(const float* from, const double* decay);
  // The rows that have a gradient, and these one after another.
  void copy_grad(Vec<u32>& ids, Vec<float>& to);
  // The gradients of n rows: zeros of those that have none.
  void copy_grad_rows(const u32* ids, std::size_t n, float* to);
  // These n rows, all different, have these gradients, all others none.
  void overwrite_grad(const u32* ids, std::size_t n, const float* from);
  void scale_grad(float factor);

 private:
  struct Owing {
    u32 row;
    double had;  // its decay_of_row
  };
  // Rows that have paid since the last update, as they were before.
  struct Paid {
    Vec<Owing> rows;
    Store numbers;
    void add(Backend& b, const Vec<Owing>& more, const Vec<float*>& from, std::size_t row_size);
    void clear() {
      rows.clear();
      numbers.clear();
    }
  };
  [[noreturn]] void no_row(i64 number) const;
  // The host will overwrite n rows: keeps that of one, else all of the table.
  void keep_numbers(u32 first, u32 n);
  void multiply_owing(Backend& b, bool keep, bool remember);
  // What a row that had so much decay is still multiplied by.
  float factor(double had) const;

  Paid paid_;
  Vec<Owing> owing_;
  Vec<float*> place_;  // of these rows, and what they are multiplied by
  Vec<float> factor_;
};

}  // namespace dnl
