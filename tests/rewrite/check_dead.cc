// Dead code: rewrite/rules/dead.cc.
#include "graph_of.h"
using namespace checks;

CHECK(dead, a_chain_that_nothing_reads_up_to_what_is_read) {
  const NodeId x = s.row(1), y = s.tanh(x), z = s.held(s.exp(y)), u = s.exp(y), v = s.softmax(u);
  s.expect(s.run(PassId::Dead) == 2, "two nodes go");
  s.is_dead(u);
  s.is_dead(v);
  s.is(z, "exp", {y});
  s.has_uses(y, 1);
  s.has_uses(u, 0);
  s.same_but({y, u, v});
}

CHECK(dead, both_arguments_of_one) {
  const NodeId x = s.row(1), y = s.tanh(x), z = s.op("cmult", {y, y});
  s.expect(s.run(PassId::Dead) == 2, "each is counted once");
  s.is_dead(y);
  s.is_dead(z);
  s.has_uses(x, 0);
}

CHECK(dead, an_op_with_its_outputs) {
  const NodeId h = s.op("_lstm_start", {s.row(1, 64)}, {word(1.f)}), c = h + 1, y = s.tanh(c);
  s.expect(s.run(PassId::Dead) == 2, "the cell, and what reads its state");
  s.is_dead(h);
  s.is_dead(c);
  s.is_dead(y);
}

CHECK(dead, leaves_an_op_of_which_one_output_is_held_or_read) {
  const NodeId h = s.op("_lstm_start", {s.row(1, 64)}, {word(1.f)});
  s.held(h + 1);
  const NodeId k = s.op("_lstm_start", {s.row(2, 64)}, {word(1.f)});
  s.held(s.tanh(k + 1));
  s.leaves(PassId::Dead);
}

CHECK(dead, leaves_what_is_held) {
  const NodeId x = s.row(1);
  s.held(s.tanh(x));
  s.held(s.exp(s.softmax(x)));
  s.leaves(PassId::Dead);
}

CHECK(dead, leaves_what_an_alias_reads) {
  s.op("reshape", {s.tanh(s.row(1))}, ints({2, 4, 4, 1}));
  s.leaves(PassId::Dead);
}

CHECK(dead, leaves_what_stands_before_a_checkpoint) {
  const NodeId y = s.tanh(s.row(1));
  s.g.checkpoint();
  const NodeId z = s.exp(y);
  s.run(PassId::Dead);
  s.is_dead(z);
  s.same_but({y, z});
  s.has_uses(y, 0);
}

CHECK(dead, leaves_what_was_seen_before) {
  const NodeId y = s.tanh(s.row(1)), z = s.exp(y);
  s.run(PassId::Dead, {}, z);
  s.is_dead(z);
  s.same_but({y, z});
}

// In a graph they come from cells, whose maps were joined before.
CHECK(dead, a_chain_that_reads_a_part_of_joined_maps) {
  const NodeId x = s.state(1), w = s.square(), u = s.square(), i = s.product(w, x), k = s.product(u, x);
  const NodeId y = s.tanh(i), z = s.held(s.exp(k));
  s.run(PassId::Join);
  s.expect(!s.g.node(i).is(kPartUnread), "both parts are read");
  s.expect(s.run(PassId::Dead) == 1, "one chain goes");
  s.is_dead(y);
  s.is(z, "_fused", {i});
  s.has_uses(i, 1);
  s.expect(s.g.node(i).is(kPartUnread), "no gradient flows into one of its parts");
}
