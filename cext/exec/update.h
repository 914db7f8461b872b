// Updater: one optimizer step over parameters and lookup tables, with the state that the rule keeps for each number.
//
// Dense parameters take one fused pass (weights, gradient, state, decay); tables take one per row: only rows with a
// gradient when sparse, all rows (narrow ones several at a time) otherwise. The step clears the gradients it used.
// Frozen members (updated = false) are left alone, and what gradient they still hold from before is dropped. Schedules
// and coefficients are the caller's: c[] is told in kernels/updates.h. Weight decay of table rows that are not updated
// is owed and paid when the row is next read (LookupTable::settle). No heap call once every member has its state. With
// threads the numbers of a step are shared out evenly, which makes no difference to any of them. One updater is for one
// thread at a time; its members may be in use by backward passes of others (GradientLocks).
// Who may include: bindings/. Includes: exec/pool.h, graph/params.h, kernels/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "graph/params.h"
#include "kernels/kernels.h"

namespace dnl {

struct UpdateRule {
  const char* name;
  void (*Kernels::*kernel)(const UpdateArgs&);
  int states;     // state vectors per number
  bool can_skip;  // a zero gradient changes nothing
};

struct UpdateStep {
  float c[6];
  float gscale = 1;  // gradients are multiplied by it: clipping
  double decay;      // weights are multiplied by (1 - decay) afterwards
  bool sparse;       // tables: only rows with a gradient
  int threads;       // at most so many work at it
  Owner owner =
      nullptr;  // the thread of Python whose update it is: its nodes that have run keep the numbers that they read,
  bool keeps = true;  // unless nobody can ask for them any more
};

struct UpdateOutcome {
  double norm = 0;  // where clipping was on
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
  UpdateOutcome update(UpdateStep s, double clip);
  void clear_gradients();
  // Zeroes the state.
  void restart();

  int states() const { return rule_->states; }
  // All state of member i (states() times its size; member: parameters in order of adding, or tables). Made if absent.
  Vec<float>& parameter_state(std::size_t i);
  Vec<float>& table_state(std::size_t i);

 private:
  struct Dense {
    std::shared_ptr<Parameter> p;
    Vec<float> state;
    float* old = nullptr;  // where numbers go before they change, or null
  };
  struct Table {
    std::shared_ptr<LookupTable> t;
    Vec<float> state;      // state k of row r at (k * rows + r) * row_size
    float* old = nullptr;  // likewise: of all rows, or of those with a gradient
  };
  // What a step does to one member, in units that can be dealt to threads: some numbers of a parameter, or a row
  // of a table, or several.
  struct Work {
    u32 member;  // parameters first
    u32 units;
    u64 cost;   // of a unit, in numbers
    u64 begin;  // cost of all work before it
  };
  // What one thread works with.
  struct Pass {
    UpdateArgs args;
    bool every_row;  // of tables, with a gradient or without
    float* no_grad;  // zeros for those without
  };
  // Global L2 norm of the gradients, summed in double. NaN or infinite when a gradient is.
  double gradient_norm() const;
  void step(const UpdateStep& s);
  // Before and after the work on a member, in one thread.
  u32 prepare_parameter(Dense& d, const UpdateStep& s);
  u32 prepare_table(Table& table, const UpdateStep& s);
  void keep_rows(Table& table, const UpdateStep& s, bool all_rows);
  void finish(const Work& w);
  void run(const Work& w, u32 from, u32 to, Pass& pass);
  void update_numbers(Dense& d, std::size_t from, std::size_t to, UpdateArgs& args);
  void update_narrow_rows(Table& table, u32 from, u32 to, UpdateArgs& args, float* gradients);
  void update_rows(Table& table, u32 from, u32 to, Pass& pass);
  bool every_row(const UpdateStep& s) const;
  void fetch_row(const Table& table, u32 row) const;
  std::size_t unit_of(const Parameter& p) const;
  std::size_t rows_of_unit(const LookupTable& t) const;

  const UpdateRule* rule_;
  std::vector<Dense> dense_;
  std::vector<Table> tables_;
  // Of the step in work.
  Vec<Work> work_;
  Vec<float> no_grad_;  // zeros for each thread: for a row, or a unit of narrow ones
  GradientLocks locks_;
  Needed needed_;  // by nodes that have run
  Moment moment_ = 0;
};

}  // namespace dnl
