// Old numbers of parameters and tables, for backward passes through nodes that ran before these were changed.
//
// A backward pass needs the numbers that its nodes read when they ran; updates overwrite them. So whoever changes
// numbers keeps those of before, if nodes of the same thread have run that may have read them: nobody's in a loop that
// renews its graph between update and value, and one copy per member in one that renews it after the update. The
// backward pass exchanges both for its time (exec/rewound.h). Changes by other threads do not count: threads may train
// one model without waiting. Guarded by the gradient mutex of the parameter or table, but for LiveRuns and now(), which
// may be called from anywhere. Who may include: graph/, exec/, bindings/. Includes: base/, graph/store.h.
#pragma once
#include <memory>
#include <vector>

#include "base/bits.h"
#include "graph/store.h"

namespace dnl {

// Trained numbers as they are between two changes, counted by the process. What has run at moment m read what was
// changed at moments up to m.
using Moment = u64;
Moment now();
Moment next_moment();  // of a change that begins

using Owner = const void*;
Owner this_thread();

// When nodes ran whose values are there, oldest and newest; none: any is false.
struct Needed {
  Moment oldest = 0, newest = 0;
  bool any = false;
};

// What one executor tells about its runs.
class LiveRuns {
 public:
  LiveRuns() = default;
  LiveRuns(const LiveRuns&) = delete;
  LiveRuns& operator=(const LiveRuns&) = delete;
  ~LiveRuns() { none(); }
  void set(Owner owner, Moment oldest, Moment newest);
  void none();
  // Of all executors whose nodes a thread ran.
  static Needed of(Owner owner);
  // May a node of this thread, whose value is there, have run since moment `from` and before `until`?
  static bool any(Owner owner, Moment from, Moment until);

 private:
  bool listed_ = false;
  Owner owner_ = nullptr;
  Moment oldest_ = 0, newest_ = 0;
};

struct Version {
  Moment until = 0;  // nodes that ran before this moment read these numbers
  Owner owner = nullptr;
  bool whole = true;
  bool lost = false;       // there were too many
  bool exchanged = false;  // the numbers of now are here, these are in their place
  Vec<u32> rows;           // unless whole; one that occurs again was newer then
  std::size_t once = 0;    // so many of the rows, the first ones, occur once
  Store numbers;
};

// Of one parameter or table.
class Versions {
 public:
  // A graph that is never renewed and runs between updates has no end of versions. So many are always kept, and more
  // while they are small.
  static constexpr std::size_t kAlways = 8, kFloats = 1 << 20;

  // The numbers, n floats, will be changed at this moment. Where in the backend's memory their copy goes, or null:
  // nobody needs one.
  float* keep_all(Backend& b, Owner owner, const Needed& needed, Moment moment, std::size_t n);
  // The same for some rows of a table.
  float* keep_rows(Backend& b, Owner owner, const Needed& needed, Moment moment, const u32* rows, std::size_t n,
                   std::size_t row_size);
  // A row will be changed by what it still owes from earlier changes.
  void keep_owing(Backend& b, u32 row, float* numbers, std::size_t row_size);

  bool empty() const { return all_.empty(); }
  // Are there none of what nodes of this thread read at that moment?
  bool lost(Owner owner, Moment ran_at) const;
  // Exchanges the numbers with those of that moment, or, `present`, with those of now. True: something was exchanged.
  bool exchange(Backend& b, Owner owner, Moment ran_at, float* numbers, std::size_t row_size);
  bool present(Backend& b, float* numbers, std::size_t row_size);
  // Gives back memory that nobody needs.
  void release_dead();

 private:
  Version* open(Backend& b, Owner owner, const Needed& needed, Moment moment, bool whole);
  Version* newest(Owner owner);
  void drop_dead(Owner owner, const Needed& needed);
  void fold(Backend& b, Owner owner);
  void take_over(Backend& b, Version& older, Version& v);
  static float* add_rows(Backend& b, Version& v, const u32* rows, std::size_t n, std::size_t row_size);
  static void drop_repeated(Backend& b, Version& v);
  void spare(std::size_t k);
  bool too_many(Owner owner) const;
  void drop_oldest(Owner owner);
  void exchange_numbers(Backend& b, Version& v, float* numbers, std::size_t row_size, bool newest_first);

  std::vector<std::unique_ptr<Version>> all_, spare_;  // in order of time
  Vec<float*> listed_;                                 // rows that are exchanged
};

}  // namespace dnl
