// Trace: what ran when, for dy.profile(). Events of all graphs and threads of the process, kept only while somebody
// traces.
//
// A TraceScope is put around what is timed; while nobody traces it costs one read of a flag. Events are added under a
// lock when their scope ends. The log has an end: events past it are counted and dropped. Who may include: exec/,
// bindings/. Includes: base/.
#pragma once
#include <atomic>

#include "base/vec.h"

namespace dnl {

// The first five are whole passes; the rest are single batches inside of one.
enum class Phase : u32 { Rewrite, Plan, Forward, Backward, Update, ForwardBatch, BackwardBatch, SharedBatch };

// Plain data; the bindings hand it to NumPy as it is (dynet_lite/profiling.py has the same list of fields).
struct TraceEvent {
  double start = 0, seconds = 0;  // since the beginning of trace_clock()
  u64 graph = 0;                  // which one: the same number for all events of a graph
  u64 floats = 0;  // batches: of all outputs. Forward, Backward: memory in use at the end for values, for gradients
  Phase phase = Phase::Plan;
  u32 op = 0, members = 0, lane = 0;  // of batches
};
static_assert(sizeof(TraceEvent) == 48, "read by NumPy without padding");

constexpr std::size_t kMaxTraceEvents = std::size_t(1) << 22;

double trace_clock();  // seconds
// Users are counted; with the last one the log goes.
void trace_begin();
void trace_end();
void trace_add(const TraceEvent& event) noexcept;
std::size_t trace_size();
u64 trace_dropped();
// Copies at most n events from number `from` on; how many.
std::size_t trace_read(std::size_t from, std::size_t n, TraceEvent* to);

extern std::atomic<int> g_trace_users;
inline bool tracing() { return g_trace_users.load(std::memory_order_relaxed) > 0; }

class TraceScope {
 public:
  TraceScope(Phase phase, const void* graph) : on_(tracing()) {
    if (!on_) return;
    event.phase = phase;
    event.graph = reinterpret_cast<u64>(graph);
    event.start = trace_clock();
  }
  ~TraceScope() {
    if (!on_) return;
    event.seconds = trace_clock() - event.start;
    trace_add(event);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  bool on() const { return on_; }

  TraceEvent event;  // the rest is filled in by who asks on()

 private:
  bool on_;
};

}  // namespace dnl
