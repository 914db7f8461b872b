// Merging of what is alike: rewrite/rules/merge.cc.
#include "graph_of.h"
using namespace checks;

namespace {
// Two nodes that are the same, unless `change` made them unlike.
struct Twins {
  NodeId a, b;
};
Twins twins(Sketch& s) {
  const NodeId x = s.row(1), y = s.row(1);
  return {s.softmax(x), s.softmax(y)};
}
}  // namespace

CHECK(merge, the_same_of_a_row_that_is_read_again) {
  const Twins t = twins(s);
  const NodeId u = s.exp(t.a), v = s.op("log", {t.b});
  s.expect(s.run(PassId::Merge) == 1, "one goes");
  s.is_alias(t.b, t.a);
  s.is(v, "log", {t.a});
  s.has_uses(t.a, 2);
  s.has_uses(s.g.operands(t.b)[0], 0);
  s.same_but({t.a, t.b, s.g.operands(t.b)[0]});
  s.expect(s.g.readers(u) == 0, "held by nobody");
}

CHECK(merge, chains_whole) {
  const Twins t = twins(s);
  const NodeId a = s.tanh(t.a), b = s.tanh(t.b), u = s.softmax(a), v = s.softmax(b);
  s.expect(s.run(PassId::Merge) == 3, "three go");
  s.is_alias(t.b, t.a);
  s.is_alias(b, a);
  s.is_alias(v, u);
  s.has_uses(a, 1);
}

CHECK(merge, constants) {
  const NodeId a = s.softmax(s.g.add_constant({16}, 2)), b = s.softmax(s.g.add_constant({16}, 2)),
               c = s.softmax(s.g.add_constant({16}, 3));
  s.expect(s.run(PassId::Merge) == 1, "one goes");
  s.is_alias(b, a);
  s.is(c, "softmax", {c - 1});
}

CHECK(merge, all_outputs) {
  const NodeId x = s.row(1, 64), y = s.row(1, 64);
  const NodeId a = s.op("_lstm_start", {x}, {word(1.f)}), b = s.op("_lstm_start", {y}, {word(1.f)});
  s.expect(s.run(PassId::Merge) == 1, "one goes");
  s.is_alias(b, a);
  s.is_alias(b + 1, a + 1);
}

// Characters: 64 cells read 8 rows.
CHECK(merge, projections_of_cells_where_most_repeat) {
  const NodeId w = s.weight({64, 16});
  Nodes projections;
  for (u32 k = 0; k < 64; ++k) {
    projections.push_back(s.inner(s.product(w, s.row(k % 8))));
    s.op("_lstm_start", {projections.back()}, {word(1.f)});
    s.held(projections.back() + 1);
  }
  s.expect(s.run(PassId::Merge) == 56, "eight stay");
  for (u32 k = 0; k < 64; ++k) {
    if (k >= 8) s.is_alias(projections[k], projections[k % 8]);
    s.expect(!s.g.node(projections[k % 8]).is(kInner), "others read it: it is no inner node");
  }
}

CHECK(merge, leaves_projections_of_few_cells) {
  const NodeId w = s.weight({64, 16});
  for (u32 k = 0; k < 60; ++k) s.held(s.op("_lstm_start", {s.inner(s.product(w, s.row(k % 8)))}, {word(1.f)}));
  s.leaves(PassId::Merge);
}

namespace {
// In a graph they come from cells, whose maps were joined before: those of two calls, and the chains that read them.
struct Calls {
  NodeId w, u, x, y, first, second;
  NodeId a, b, c, d;  // of the first, and of the second
};
Calls calls(Sketch& s) {
  Calls of{s.square(), s.square(), s.row(1), s.row(1), 0, 0, 0, 0, 0, 0};
  of.first = s.product(of.w, of.x);
  const NodeId k = s.product(of.u, of.x);
  of.second = s.product(of.w, of.y);
  const NodeId l = s.product(of.u, of.y);
  of.a = s.tanh(of.first);
  of.b = s.exp(k);
  of.c = s.tanh(of.second);
  of.d = s.exp(l);
  s.run(PassId::Join);
  s.is(of.second, "_affines", {of.y, of.w, of.u}, ints({1, 0, 0}));
  return of;
}
}  // namespace

CHECK(merge, joined_maps_with_all_that_reads_them) {
  const Calls of = calls(s);
  s.expect(s.run(PassId::Merge) == 3, "the maps and two chains");
  s.is_alias(of.second, of.first);
  s.is_alias(of.c, of.a);
  s.is_alias(of.d, of.b);
  s.has_uses(of.first, 2);
  s.expect(!s.g.node(of.first).is(kPartUnread), "both parts are read");
}

CHECK(merge, leaves_joined_maps_whose_parts_are_read) {
  const Calls of = calls(s);
  s.held(of.c);
  s.expect(s.run(PassId::Merge) == 1, "one chain");
  s.is_alias(of.d, of.b);
  s.is(of.second, "_affines", {of.y, of.w, of.u}, ints({1, 0, 0}));
  s.has_uses(of.first, 2);
  s.has_uses(of.second, 1);
  s.expect(s.g.node(of.second).is(kPartUnread) && !s.g.node(of.first).is(kPartUnread),
           "of the second one part is read");
}

CHECK(merge, leaves_unlike_attributes) {
  const NodeId x = s.row(1), y = s.row(1);
  s.softmax(s.op("elu", {x}, {}, {word(1.f)}));
  s.softmax(s.op("elu", {y}, {}, {word(2.f)}));
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_other_rows_and_inputs) {
  s.softmax(s.row(1));
  s.softmax(s.row(2));
  const NodeId x = s.input();
  s.softmax(x);
  s.softmax(x);
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_what_is_held) {
  const Twins t = twins(s), u = twins(s);
  s.held(t.a);
  s.held(t.b);
  s.held(u.a);
  s.held(u.b);
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_what_reads_a_row_that_is_held) {
  const NodeId x = s.held(s.row(1)), y = s.held(s.row(1));
  s.softmax(x);
  s.softmax(y);
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_an_op_of_which_one_output_is_held) {
  for (int k = 0; k < 2; ++k) s.held(s.op("_lstm_start", {s.row(1, 64)}, {word(1.f)}) + 1);
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_random_ops) {
  const NodeId x = s.row(1), y = s.row(1);
  for (NodeId v : {x, y}) s.softmax(s.op("dropout", {v}, {}, {word(.5f), word(1), word(2)}));
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_what_is_made_of_weights) {
  const NodeId w = s.square();
  s.product(s.op("softmax", {w}, ints({0})), s.input());
  s.product(s.op("softmax", {w}, ints({0})), s.input());
  s.leaves(PassId::Merge);
}

// One of the two products that each run inside a map of their own stays: it is not worth a node.
CHECK(merge, leaves_what_will_run_inside_its_reader) {
  const NodeId w = s.square(), x = s.row(1), y = s.row(1), h = s.state(2), k = s.state(3);
  s.softmax(s.add(s.product(w, x), h));
  s.softmax(s.add(s.product(w, y), k));
  s.leaves(PassId::Merge);
}

CHECK(merge, leaves_another_lane) {
  const Twins t = twins(s);
  s.leaves(PassId::Merge, {{t.a}, {t.b}});
}

CHECK(merge, leaves_what_stands_before_a_checkpoint) {
  const NodeId x = s.row(1), y = s.row(1);
  s.softmax(x);
  s.g.checkpoint();
  s.softmax(y);
  s.leaves(PassId::Merge);
}
