// The log of events and its lock.
#include "exec/trace.h"

#include <algorithm>
#include <chrono>
#include <mutex>

namespace dnl {
namespace {

std::mutex g_lock;
Vec<TraceEvent>& events() {
  static Vec<TraceEvent> log;
  return log;
}
u64 g_dropped = 0;

}  // namespace

std::atomic<int> g_trace_users{0};

double trace_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void trace_begin() {
  const std::lock_guard<std::mutex> lock(g_lock);
  ++g_trace_users;
}

void trace_end() {
  const std::lock_guard<std::mutex> lock(g_lock);
  if (--g_trace_users > 0) return;
  events().release();
  g_dropped = 0;
}

void trace_add(const TraceEvent& event) noexcept {
  const std::lock_guard<std::mutex> lock(g_lock);
  if (!tracing()) return;
  try {
    if (events().size() < kMaxTraceEvents) return events().push_back(event);
  } catch (const Error&) {  // no memory: it counts as dropped
  }
  ++g_dropped;
}

std::size_t trace_size() {
  const std::lock_guard<std::mutex> lock(g_lock);
  return events().size();
}

u64 trace_dropped() {
  const std::lock_guard<std::mutex> lock(g_lock);
  return g_dropped;
}

std::size_t trace_read(std::size_t from, std::size_t n, TraceEvent* to) {
  const std::lock_guard<std::mutex> lock(g_lock);
  if (from >= events().size()) return 0;
  n = std::min(n, events().size() - from);
  std::memcpy(static_cast<void*>(to), events().data() + from, n * sizeof(TraceEvent));
  return n;
}

}  // namespace dnl
