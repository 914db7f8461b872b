// The table of passes over the graph, in the order in which they run: what each is called, makes, and why it stands where it stands.
// Plain data. Who may include: rewrite/, exec/, bindings/. Includes: op/.
#pragma once
#include <string>

#include "op/backend.h"

namespace dnl {

enum class PassId : u8 { Dead, Merge, Loss, Sum, Attention, Fuse, Join, Concat, Bundle };
constexpr u32 kPasses = 9;

struct Pass {
  const char* name;   // of its switch and its file in rules/
  const char* does;   // in a few words, for people
  const char* place;  // why it runs after those before it
  const char* makes[4];  // ops: a backend that lacks one of them goes without this pass
};

const Pass& pass(PassId id);
// A set of passes: a bit for each.
using PassSet = u32;
constexpr PassSet kAllPasses = (1u << kPasses) - 1;
constexpr PassSet only(PassId id) { return 1u << static_cast<u32>(id); }
constexpr bool has(PassSet set, PassId id) { return (set & only(id)) != 0; }
// Those whose ops a backend has.
PassSet passes_of(const Backend& backend);
// Throws Error(Value) naming those there are.
PassId pass_by_name(const std::string& name);

}  // namespace dnl
