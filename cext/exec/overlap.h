// Overlapped steps: the backward pass and the update of one mini-batch run while Python builds the next.
//
// There is one job at a time in the process. It is remembered first: a backward pass, then perhaps the update that uses
// its gradients. Then it is either run, by the first who needs what it makes, or begun on a worker; who needs it then
// helps to finish it. Callers see to it that nobody looks at parameters, gradients or a trainer while there is a job
// (bindings/overlap.pxi); only the executor that plans the next mini-batch finishes it by itself, as late as it can.
// Errors are kept for take_outcome(). Who may include: exec/, bindings/. Includes: exec/.
#pragma once
#include <atomic>
#include <exception>

#include "exec/executor.h"
#include "exec/update.h"

namespace dnl {

enum class JobState : int {
  None,
  Remembered,
  Claimed,  // finish_job() runs it, in one thread or another
  Running,  // on a worker
  Done      // but nobody has asked what became of it
};

struct JobOutcome {
  UpdateOutcome update;
  std::exception_ptr error;

  bool failed() const { return error != nullptr; }
  void rethrow() const {
    if (error) std::rethrow_exception(error);
  }
};

extern std::atomic<JobState> g_job_state;
inline JobState job_state() { return g_job_state.load(std::memory_order_acquire); }
inline bool job_pending() { return job_state() != JobState::None; }

// ---- one at a time: under the GIL ------------------------------------------------------------------------------

// There must be no job. The value of `loss` must be there.
void remember_backward(Executor& x, NodeId loss);
// There must be a remembered backward pass, and no update of it yet.
void remember_update(Updater& updater, const UpdateStep& step, double clip);
bool job_has_update();
// Is there a job that this is needed for?
bool job_needs(const Executor* x);
bool job_needs(const Updater* u);
// The remembered job will be run by finish_job(): it cannot be added to or begun any more.
void claim_job();
// Begins the remembered job on a worker. False: the workers are in use.
bool start_job(int threads);
// What became of the job that is done, once; then there is none.
JobOutcome take_outcome();

// ---- from any thread -------------------------------------------------------------------------------------------

// Runs what is claimed, or waits for what is running and helps. Then the job is done, or was only remembered, or there
// is none.
void finish_job();

}  // namespace dnl
