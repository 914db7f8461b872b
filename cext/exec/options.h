// Options of running, and the counters it keeps. Plain data. Who may include: exec/, bindings/. Includes: schedule/.
#pragma once
#include "schedule/plan.h"

namespace dnl {

// Settings. Each is declared here, in one line, and nowhere else (exec/plan_cache.cc compares them): of these lines
// cext/bindings/generate.py makes the attributes of _core.settings, what a graph takes over of them, and their types;
// dynet_lite/config.py makes of them what dy.configure() and the variables DYNET_LITE_... know, and says what a value
// that is no bool may be. `internal`: users do not see it.
struct EngineSettings {
  Strategy strategy = Strategy::Greedy;
  bool verify = false;   // every rewritten graph and every plan before it runs
  bool profile = false;  // times every op
  bool fuse = true;      // passes over the graph (rewrite/passes.h); none under check_validity
  bool merge = true;     // internal: with fuse, the pass of this name; not in tests of what repeats
  u32 passes_off = 0;    // internal: a PassSet; users say rewrites="-join"
  int threads = 1;
  u64 least_work = 200000;  // internal: floats touched by pending nodes; below this threads are not worth waking
  u64 least_outer = 16384;  // internal: numbers of a matrix whose gradient may stay an outer product
  bool keep_plans = true;   // of small graphs, for those that are made alike (exec/plan_cache.h)
};
// Those that the bindings look at themselves.
struct GraphSettings {
  bool autobatch = true;           // else the strategy is none
  bool overlap = true;             // of steps, with threads: see overlap.pxi
  const char* backend = "cpu";     // of new graphs
  const char* cells = "recorded";  // recorded, inline or check: see templates.pxi
  bool compile = true;             // else compiled functions run at each call: see compiled.pxi
};

// What one graph is run with: the settings, and what its renewal says.
struct ExecOptions : EngineSettings {
  bool check_validity = false;     // NaN and infinity raise at the node that made them
  bool touches_looked_up = false;  // rows looked up before the loss count as touched though it may not depend on them
};

// What happened since the last renewal of the graph; times in seconds of wall time.
struct Stats {
  u64 nodes = 0;    // op nodes run
  u64 dead = 0;     // op nodes that did not run, for nothing needs them (rewrite/rules/dead.cc)
  u64 merged = 0;   // op nodes that did not run, for others compute the same (rewrite/rules/merge.cc)
  u64 batches = 0;  // groups run
  u64 lower_bound = 0;
  u64 floats_gathered = 0, floats_scattered = 0, rows_repeated = 0;
  u64 transposed = 0;  // matrices, for backward passes (kernels/transposes.h)
  u64 plans = 0;
  u64 plans_again = 0;                       // forward passes by plans that were there
  u64 plan_steps = 0;                        // Plan::steps
  u64 back_plans = 0, back_plans_again = 0;  // the same of backward passes
  double plan_time = 0, forward_time = 0, backward_time = 0;
};

// Time and calls of one op, forward and backward; kept only while profiling.
struct OpProfile {
  u64 calls = 0, members = 0;
  double forward = 0, backward = 0;
};

}  // namespace dnl
