// How gradients are made: steps in their order, what waits for what, and where each gradient lies. Plain data.
//
// The memory of gradients is not cleared beforehand. Whether a call assigns or adds, what is cleared for it, and what
// is added afterwards is decided here (schedule/back_run.cc), before anything runs. Each lane has arrays of its own, so
// that lanes are planned at the same time; tasks are ranges of a lane's steps. Addresses are opaque: only backends
// follow them. Who may include: schedule/, exec/. Includes: schedule/, base/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/arena.h"
#include "op/backend.h"
#include "schedule/run.h"
#include "schedule/split.h"

namespace dnl {

enum class StepKind : u8 {
  Zero,     // memory that a call will add to is cleared
  Stacked,  // OpDef::backward: consecutive members of a group
  Shared,   // OpDef::backward_shared: consecutive members of a type, through all its groups
  Add,      // what a call has assigned elsewhere is added to where it belongs
  Passed    // who watches is told that nothing of this group or after it is still to come (exec/complete.h)
};

struct BackStep {
  StepKind kind;
  bool kept;         // Call::kept
  bool apart;        // each member assigns gradients that no other member writes to: threads may share the call
  u32 of;            // Stacked, Passed: the group. Shared: the type
  u32 first, count;  // members; Zero, Add: moves
  u32 targets;       // of argument 0
};

// Where the gradient of an argument goes; rows that are not wanted: nowhere.
struct Target {
  Rows rows;
  bool add;
};

// Rows of n floats are cleared (from is not wanted) or added.
struct Move {
  std::size_t rows, n;
  Rows from, to;
};

inline Move zeros(float* at, std::size_t n) { return {1, n, Rows{}, Rows{at, 0, nullptr}}; }

struct BackLane {
  Vec<BackStep> steps;
  Vec<Target> targets;
  Vec<Move> moves;
  Arena lists;             // addresses of rows that are not regular
  Arena memory;            // the backend's, of this:
  float* spare = nullptr;  // where calls assign what is added later, and what nobody wants
  std::size_t spares = 0;

  explicit BackLane(MemorySource source) : memory(source) {}
  void clear() {
    steps.clear();
    targets.clear();
    moves.clear();
    lists.rewind();
    memory.rewind();
    spare = nullptr;
    spares = 0;
  }
};

// Steps of one run, one after another, in one thread.
struct BackTask {
  u32 run;  // whose, and in which lane's arrays
  u32 lane;
  u32 first, count;
  u32 runner;    // tasks of one stage that have one are never at the same time
  u32 after[2];  // tasks, before this one, that must be done; kNoNode: none
};

constexpr u32 kMaxBins = 2 * kMaxLanes, kMaxTasks = kMaxLanes * (1 + kMaxBins);

// Stages follow one another; the tasks of each may run at the same time.
struct BackStage {
  u32 run, runs;
  u32 task, tasks;
  u32 zero, zeros;  // moves before its tasks
  u32 add, adds;    // and after them: sums of what lanes have added up privately, in their order
};

struct BackPlan {
  std::vector<std::unique_ptr<BackLane>> lanes;
  Vec<BackStage> stages;
  Vec<BackTask> tasks;
  Vec<Move> moves;
};

// What is known of gradients by node while they are planned.
enum Reached : u8 {  // does the pass come to it, and from how many readers (kReader each, as far as there is room)?
  kReached = 1,
  kSeveral = 2,  // more than one node reads it
  kReachedAlias = 4,
  kReader = 8
};
constexpr u32 kMostReaders = 31;
enum Written : u8 {  // by root
  kNothing,
  kNow,  // by the call that is being planned
  kWritten,
  kInParts  // each part is assigned by the one node that reads it
};
struct Gradients {
  explicit Gradients(const Graph& graph) : g(graph) {}
  const Graph& g;
  Vec<u8> reached;
  Vec<u8> written;
  NodeId first = 0, end = 0;  // but for these leaves, all that the pass comes to is in [first, end)
  Vec<NodeId> leaves;         // the last first

  bool reaches(NodeId i) const { return i < reached.size() && reached[i]; }
  NodeId root(NodeId i) const { return reached[i] & kReachedAlias ? g.node(i).root : i; }
};

// Throws Error(Internal) unless what is added to and what is read has been made (in spare memory by the same call),
// nobody assigns what was written before, and tasks that may run at the same time write to different memory. Where the
// loss has its gradient: n floats at seed.
void verify_back_plan(const Graph& g, const BackPlan& plan, const Runs& runs, const float* seed, std::size_t n);
// A line per step. most: so many rows of each list.
std::string dump_back_plan(const Graph& g, Backend& backend, const BackPlan& plan, const Runs& runs, u32 most);

}  // namespace dnl
