// Planning a backward pass: stages from the last to the first, in each the runs, and what lanes have to share.
//
// What more than one lane may add to while lanes run (rows of tables, parameters that are arguments of single members,
// small weights, what was made in the head) has private memory in every lane but the first, and is added up in a fixed
// order. Gradients of other shared arguments are formed by tasks that each thread takes when it has time
// (schedule/bins.h). Who may include: exec/. Includes: schedule/.
#pragma once
#include "op/backend.h"
#include "schedule/back_run.h"
#include "schedule/split.h"

namespace dnl {

class BackPlanner {
 public:
  BackPlanner(const Graph& g, Backend& backend) : gradients(g), g_(g), backend_(backend) {}

  void begin(const BackOptions& options);
  // The stage of the runs [from, to), of which all stages behind are planned. Gradients take memory from `memory`.
  void begin_stage(const Runs& runs, u32 from, u32 to, Arena& memory);
  // After it, for each lane, at the same time if one likes; then:
  void plan_lane(u32 lane) { runs_[lane].plan(); }
  void end_stage();
  const BackPlan& plan() const { return plan_; }
  // Does the node's gradient go to the slot of one row of a table?
  bool is_slot(NodeId i) const;
  // Where gradients lie, by node, for a lane; the first one's are those that come out. Null: none is wanted.
  Vec<float*>& at(u32 lane = 0) { return at_[lane]; }
  const Vec<float*>& at(u32 lane = 0) const { return at_[lane]; }
  void release();

  Gradients gradients;

 private:
  struct Row {
    u32 lane;    // that reads it, or kSeveralLanes
    float* own;  // private gradient in the lane that gets them at the moment
    u32 owner;   // that lane
  };
  static constexpr u32 kSeveralLanes = 0xfffffffeu;
  template <class F>
  void each_common(const BackRun& run, F f) const;
  template <class F>
  void each_left(const BackRun& run, F f) const;
  void give_private(u32 lane);
  void own_gradient(NodeId root, u32 lane);
  void find_rows();
  u32 row_number(NodeId i) const;
  void deal_shared();
  u32 lanes() const { return plan_.stages[plan_.stages.size() - 1].runs; }

  const Graph& g_;
  Backend& backend_;
  BackOptions options_;
  BackPlan plan_;
  Vec<float*> at_[kMaxLanes];
  BackRun runs_[kMaxLanes];  // of the stage, by lane
  Arena* memory_ = nullptr;
  Vec<Row> rows_;  // by row_number(): those of table t from first_row_[t] on
  Vec<u32> first_row_;
  Vec<Move> private_;
  Bins bins_;
};

}  // namespace dnl
