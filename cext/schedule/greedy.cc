// greedy, the default strategy, and auto.
//
// Types (signatures) form a graph of their own: an edge where a node of one type is an argument of a node of another.
// Its strongly connected components are run in topological order. A component of one type that never feeds itself
// is one batch, all of it, whatever its depth (input projections, output layers, losses); this is optimal. Inside a
// component with recurrence the sufficient-condition rule decides: run the type with the highest share of ready nodes
// among the frontier of that type alone (nodes with no unexecuted ancestor of their own type); 1 means that waiting
// cannot make the batch larger. Ties go to the lower mean depth. The rule is the reward of ED-Batch (Chen, Gibbons,
// Mowry, 2023) used without learning. Where that takes more batches than the lower bound, auto looks for other orders
// and takes what has the fewest (schedule/frontier.h); what it plans depends on the graph alone. A component of more
// than kMaxTypes types, or too large, falls back to the agenda.
//
// The lower bound on the number of batches is the sum over types of the longest chain of nodes of that type.
#include <algorithm>

#include "schedule/readers.h"

namespace dnl {
namespace {

constexpr u64 kMostDepths = u64(1) << 23;  // nodes times types of a component: a number is kept for each

struct Greedy {
  StrategyInput in;
  Plan& out;
  PlanScratch& s;
  const u32 n;

  // A component of one type that feeds itself: level by level.
  void chain(const u32* members, u32 count, u32 type) {
    Vec<u32>& level = s.a;  // by local index; only members are written and read
    level.resize(n);
    u32 deepest = 0;
    for (u32 k = 0; k < count; ++k) {
      const u32 i = members[k];
      u32 d = 0;
      for (u32 q = s.dep_begin[i]; q < s.dep_begin[i + 1]; ++q)
        if (s.type_of[s.deps[q]] == type) d = std::max(d, level[s.deps[q]] + 1);
      level[i] = d;
      deepest = std::max(deepest, d);
    }
    Vec<u32>& at = s.b;  // counting sort by level
    at.assign(deepest + 2, 0);
    for (u32 k = 0; k < count; ++k) ++at[level[members[k]] + 1];
    const u32 base = static_cast<u32>(out.order.size());
    for (u32 d = 0; d <= deepest; ++d) {
      out.groups.push_back({type, base + at[d], at[d + 1], 0});
      at[d + 1] += at[d];
    }
    out.order.extend(count);
    for (u32 k = 0; k < count; ++k) out.order[base + at[level[members[k]]]++] = out.exec[members[k]];
    out.lower_bound += deepest + 1;
  }

  // A component of several types. `types` are its types, `members` its nodes in ascending order.
  template <class T>
  void recurrent(const u32* members, u32 count, const u32* types, u32 m, Vec<T>& typed_depth) {
    Vec<u32>& lane = s.lane;
    for (u32 k = 0; k < m; ++k) lane[types[k]] = k;
    auto inside = [&](u32 i) { return lane[s.type_of[i]] != kNoNode; };

    // Typed depths: for each node and each type of the component, nodes of that type on the longest path to it.
    Vec<u32>&where = s.where, &ready_next = s.a;
    where.resize(n);
    ready_next.resize(n);
    typed_depth.assign(static_cast<std::size_t>(count) * m, 0);
    out.steps += static_cast<u64>(count) * m;
    Vec<u32>& longest = s.chain;
    longest.assign(m, 0);
    for (u32 k = 0; k < count; ++k) {
      const u32 i = members[k];
      where[i] = k;
      T* mine = typed_depth.data() + static_cast<std::size_t>(k) * m;
      for (u32 q = s.dep_begin[i]; q < s.dep_begin[i + 1]; ++q) {
        const u32 p = s.deps[q];
        if (!inside(p)) continue;
        const T* theirs = typed_depth.data() + static_cast<std::size_t>(where[p]) * m;
        for (u32 t = 0; t < m; ++t) mine[t] = mine[t] > theirs[t] ? mine[t] : theirs[t];
      }
      const u32 t = lane[s.type_of[i]];
      ++mine[t];
      longest[t] = std::max<u32>(longest[t], mine[t]);
    }
    list_readers(s, members, count, inside);

    // Per type: ready list, unexecuted nodes per typed depth, the lowest depth with unexecuted nodes, ready beyond it.
    Vec<u32>& depth_begin = s.c;  // into `unexecuted`
    Vec<u32>& unexecuted = s.d;
    depth_begin.resize(m + 1);
    depth_begin[0] = 0;
    for (u32 t = 0; t < m; ++t) {
      depth_begin[t + 1] = depth_begin[t] + longest[t] + 2;
      out.lower_bound += longest[t];
    }
    unexecuted.assign(depth_begin[m], 0);
    u32 head[kMaxTypes], n_ready[kMaxTypes], front[kMaxTypes], left[kMaxTypes];
    u32 beyond[kMaxTypes];  // ready nodes above the front: they are in the frontier too
    u64 depth_sum[kMaxTypes];
    ReadyTypes ready(m);
    for (u32 t = 0; t < m; ++t) {
      head[t] = kNoNode;
      n_ready[t] = 0;
      front[t] = 1;
      left[t] = 0;
      beyond[t] = 0;
      depth_sum[t] = 0;
    }
    auto typed = [&](u32 k, u32 t) { return typed_depth[static_cast<std::size_t>(k) * m + t]; };
    for (u32 k = count; k-- > 0;) {
      const u32 i = members[k], t = lane[s.type_of[i]];
      ++unexecuted[depth_begin[t] + typed(k, t)];
      ++left[t];
      depth_sum[t] += in.g.node(out.exec[i]).depth;
      if (s.waiting[i]) continue;
      ready.add(t);
      ready_next[i] = head[t];
      head[t] = i;
      ++n_ready[t];
      beyond[t] += typed(k, t) > 1;
    }

    for (u32 remaining = count; remaining;) {
      u32 best = kNoNode;
      double best_ratio = -1, best_mean = 0;
      ready.each([&](u32 t) {
        ++out.steps;
        if (unexecuted[depth_begin[t] + front[t]] == 0) {
          while (unexecuted[depth_begin[t] + front[t]] == 0) ++front[t];
          beyond[t] = 0;
          for (u32 i = head[t]; i != kNoNode; i = ready_next[i]) beyond[t] += typed(where[i], t) > front[t];
        }
        const double ratio = static_cast<double>(n_ready[t]) / (unexecuted[depth_begin[t] + front[t]] + beyond[t]);
        const double mean = static_cast<double>(depth_sum[t]) / left[t];
        if (ratio > best_ratio || (ratio == best_ratio && mean < best_mean)) {
          best = t;
          best_ratio = ratio;
          best_mean = mean;
        }
      });
      DNL_INTERNAL(best != kNoNode, "greedy: nothing is ready (a cycle?)");
      const u32 begin = static_cast<u32>(out.order.size());
      u32 i = head[best];
      const u32 taken = n_ready[best];
      head[best] = kNoNode;
      ready.remove(best);
      n_ready[best] = beyond[best] = 0;
      for (; i != kNoNode; i = ready_next[i]) {
        out.order.push_back(out.exec[i]);
        --unexecuted[depth_begin[best] + typed(where[i], best)];
        depth_sum[best] -= in.g.node(out.exec[i]).depth;
      }
      left[best] -= taken;
      remaining -= taken;
      out.groups.push_back({types[best], begin, taken, 0});
      for (u32 k = begin; k < begin + taken; ++k) {
        const u32 p = where[s.local[out.order[k]]];
        for (u32 q = s.succ_begin[p]; q < s.succ_begin[p + 1]; ++q) {
          const u32 v = s.succs[q];
          if (--s.waiting[v]) continue;
          const u32 t = lane[s.type_of[v]];
          ready.add(t);
          ready_next[v] = head[t];
          head[t] = v;
          ++n_ready[t];
          beyond[t] += typed(where[v], t) > front[t];
        }
      }
    }
    for (u32 k = 0; k < m; ++k) lane[types[k]] = kNoNode;
  }

  template <class T>
  void several(const u32* members, u32 count, const u32* types, u32 m, bool look_ahead, Vec<T>& typed) {
    const u32 first = static_cast<u32>(out.groups.size()), below = out.lower_bound;
    recurrent(members, count, types, m, typed);
    const u32 bound = out.lower_bound - below, groups = static_cast<u32>(out.groups.size()) - first;
    if (look_ahead && groups > bound) s.frontier.improve(s, members, count, types, m, bound, first, typed, out);
  }
};

void run_components(StrategyInput in, Plan& out, bool look_ahead) {
  PlanScratch& s = in.scratch;
  TypeGraph& graph = s.type_graph;
  graph.build(in);
  const u32 n = static_cast<u32>(out.exec.size()), n_types = static_cast<u32>(out.types.size());
  Greedy run{in, out, s, n};
  s.lane.assign(n_types, kNoNode);
  for (u32 c = graph.n_comp; c-- > 0;) {
    const u32* members = graph.nodes.data() + graph.node_begin[c];
    const u32* types = graph.types.data() + graph.type_begin[c];
    const u32 count = graph.node_begin[c + 1] - graph.node_begin[c], m = graph.type_begin[c + 1] - graph.type_begin[c];
    if (!graph.recurrent(c)) {
      out.groups.push_back({types[0], static_cast<u32>(out.order.size()), count, 0});
      NodeId* to = out.order.extend(count);
      for (u32 k = 0; k < count; ++k) to[k] = out.exec[members[k]];
      ++out.lower_bound;
    } else if (m == 1) {
      run.chain(members, count, types[0]);
    } else if (m <= kMaxTypes && u64(count) * m <= kMostDepths) {
      if (deep(in, graph, c))
        run.several(members, count, types, m, look_ahead, s.deep_typed_depth);
      else
        run.several(members, count, types, m, look_ahead, s.typed_depth);
    } else {
      run_agenda(in, members, count, out);
      out.lower_bound += chain_bound(in, graph, c, out.steps);
    }
  }
}

}  // namespace

void schedule_greedy(StrategyInput in, Plan& out) { run_components(in, out, false); }
void schedule_auto(StrategyInput in, Plan& out) { run_components(in, out, true); }

}  // namespace dnl
