// Updater: one optimizer step over parameters and lookup tables, with the state that the rule keeps for each number.
//
// Which numbers change, and where those of before are kept, is decided here; the arithmetic is the backend's
// (Backend::update), in one call per thread: of tables only rows with a gradient when sparse, all rows otherwise. The
// step clears the gradients it used. Frozen members (updated = false) are left alone, and what gradient they still hold
// from before is dropped. Schedules and coefficients are the caller's: c[] is told in kernels/updates.h. Weight decay
// of table rows that are not updated is owed and paid when the row is next read (LookupTable::settle). No heap call
// once every member has its state. With threads the numbers of a step are shared out evenly, which makes no difference
// to any of them. One updater is for one thread at a time; its members may be in use by backward passes of others
// (GradientLocks). Who may include: bindings/. Includes: exec/pool.h, graph/params.h, op/backend.h.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "graph/params.h"
#include "op/backend.h"

namespace dnl {

struct UpdateStep {
  Backend* backend;
  float c[6];
  double decay;  // weights are multiplied by (1 - decay) afterwards
  bool sparse;   // tables: only rows with a gradient
  int threads;   // at most so many work at it
  Owner owner =
      nullptr;  // the thread of Python whose update it is: its nodes that have run keep the numbers that they read,
  bool keeps = true;   // unless nobody can ask for them any more
  bool alone = false;  // no other thread can use the members meanwhile
};

// Of an update with clipping.
struct UpdateOutcome {
  double norm = 0;  // of the gradients; 0: without clipping, or nobody knows yet (Updater::late)
  bool clipped = false;
};

class Updater {
 public:
  // Rules: sgd, momentum, adagrad, adadelta, rmsprop, adam, amsgrad, eg. Throws Error(Value) for another name.
  explicit Updater(const std::string& rule);
  ~Updater();

  void add_parameter(const std::shared_ptr<Parameter>& p);
  void add_table(const std::shared_ptr<LookupTable>& t);

  // clip: greatest norm of the gradients, 0 or less for none. With a norm that is NaN or infinite the gradients are
  // cleared and nothing else is done.
  UpdateOutcome update(const UpdateStep& s, double clip);
  // Of the last update, once, if the host did not wait for the norm then (Backend::clip_factor).
  UpdateOutcome late();
  bool is_late() const { return clipper_ != nullptr; }
  void clear_gradients();
  // Zeroes the state.
  void restart();

  int states() const { return rule_->states; }
  // All state of member i (states() times its size; member: parameters in order of adding, or tables). Made if absent.
  Store& parameter_state(std::size_t i);
  Store& table_state(std::size_t i);

 private:
  struct Dense {
    std::shared_ptr<Parameter> p;
    Store state;
    float* old = nullptr;  // where numbers go before they change, or null
    bool turn = false;     // new numbers go to the other buffer, whatever graphs other threads make or renew meanwhile
  };
  struct Table {
    std::shared_ptr<LookupTable> t;
    Store state;           // state k of row r at (k * rows + r) * row_size
    float* old = nullptr;  // likewise: of all rows, or of those with a gradient
  };
  // What a step does to one member, in units that can be dealt to threads: some numbers of a parameter, or a row
  // of a table, or several (op/update.h).
  struct Work {
    u32 member;  // parameters first
    u32 units;
    u64 cost;   // of a unit, in numbers
    u64 begin;  // cost of all work before it
  };
  // Global L2 norm of the gradients, summed in double. NaN or infinite when a gradient is.
  double gradient_norm();
  void list_gradients();
  bool may_be_outer(const UpdateStep& s) const;
  bool clips_without_wait(double clip);
  void step(const UpdateStep& s, float gscale, const float* factor);
  u64 prepare(const UpdateStep& s);
  // Before and after the work on a member, in one thread.
  u32 prepare_parameter(Dense& d, const UpdateStep& s);
  u32 prepare_table(Table& table, const UpdateStep& s);
  void keep_rows(Table& table, const UpdateStep& s, bool all_rows);
  void copy_old(Table& table, bool all_rows);
  void keep_unchanged(const UpdateStep& s);
  void finish(const Work& w, bool all_rows);
  // The tensors of what lies from one cost to another in the line of all work. They are written where they lie.
  void deal(u64 first, u64 last, bool all_rows);
  void numbers(UpdateTensor& t, Dense& d, std::size_t from, std::size_t to);
  void rows(UpdateTensor& u, Table& table, std::size_t from, std::size_t to, bool all_rows);
  void point_at_state(UpdateTensor& t, Store& state, std::size_t total, std::size_t at) const;
  bool every_row(const UpdateStep& s) const { return !s.sparse && !rule_->can_skip; }
  std::size_t unit_of(const Parameter& p) const { return rule_->whole ? p.size() : kUpdateUnit; }

  const UpdateRule* rule_;
  std::vector<Dense> dense_;
  std::vector<Table> tables_;
  // Of the step in work.
  Vec<Work> work_;
  Vec<UpdateTensor> tensors_;  // of all threads, one after another
  Vec<std::size_t> begin_;     // of each thread's
  Vec<Numbers> gradients_;     // that the norm is of
  double outer_squares_ = 0;   // and the squares of those that are not formed
  Vec<float*> rows_;           // that are kept
  GradientLocks locks_;
  Needed needed_;  // by nodes that have run
  Moment moment_ = 0;
  Backend* backend_ = nullptr;
  Backend* clipper_ = nullptr;  // that knows what became of the last update
  Store clip_;                  // its factor and norm,
  float late_[2];               // and here, once they have come: kComing before
};

}  // namespace dnl
