#include "exec/overlap.h"

#include <mutex>

#include "exec/pool.h"

namespace dnl {
namespace {

struct Job {
  Executor* executor = nullptr;
  NodeId loss = 0;
  Updater* updater = nullptr;
  UpdateStep step{};
  double clip = 0;
  JobOutcome outcome;

  void run() {
    try {
      executor->backward(loss, false);
      if (updater) outcome.update = updater->update(step, clip);
    } catch (...) { outcome.error = std::current_exception(); }
  }
};

Job job;
std::mutex finishing;  // held by who finishes the job

}  // namespace

std::atomic<JobState> g_job_state{JobState::None};

void remember_backward(Executor& x, NodeId loss) {
  DNL_INTERNAL(!job_pending(), "overlap: there is a job already");
  DNL_INTERNAL(x.done(loss), "overlap: the loss has not run");
  x.note_held();
  job = Job{};
  job.executor = &x;
  job.loss = loss;
  g_job_state = JobState::Remembered;
}

void remember_update(Updater& updater, const UpdateStep& step, double clip) {
  DNL_INTERNAL(job_state() == JobState::Remembered && !job.updater, "overlap: there is no backward pass to update by");
  job.updater = &updater;
  job.step = step;
  job.clip = clip;
}

bool job_has_update() { return job_pending() && job.updater; }
bool job_needs(const Executor* x) { return job_pending() && job.executor == x; }
bool job_needs(const Updater* u) { return job_pending() && job.updater == u; }

void claim_job() {
  if (job_state() == JobState::Remembered) g_job_state = JobState::Claimed;
}

bool start_job(int threads) {
  DNL_INTERNAL(job_state() == JobState::Remembered, "overlap: there is no job to begin");
  job.step.keeps = false;  // the graph has been renewed
  if (!start_task(threads, [] { job.run(); })) {
    job.step.keeps = true;
    return false;
  }
  g_job_state = JobState::Running;
  return true;
}

void finish_job() {
  const std::lock_guard<std::mutex> lock(finishing);
  switch (job_state()) {
    case JobState::Claimed: job.run(); break;
    case JobState::Running: finish_task(); break;
    default: return;
  }
  g_job_state = JobState::Done;
}

JobOutcome take_outcome() {
  DNL_INTERNAL(job_state() == JobState::Done, "overlap: the job is not done");
  const JobOutcome outcome = job.outcome;
  job = Job{};
  g_job_state = JobState::None;
  return outcome;
}

}  // namespace dnl
