// Chains of elementwise ops: rewrite/rules/fuse.cc.
#include "graph_of.h"
using namespace checks;

CHECK(fuse, a_chain) {
  const NodeId x = s.state(1), a = s.exp(x), b = s.tanh(a);
  s.expect(s.run(PassId::Fuse) == 1, "one chain");
  s.expect(s.g.nargs(b) == 1, "one input");
  s.is(b, "_fused", {x});
  s.has_formula(b, "tanh(exp(x0))");
  s.is_inside(a, b);
  s.has_uses(a, 0);
  s.has_uses(x, 1);
  s.has_depth(b, 3);
  s.same_but({a, b});
}

CHECK(fuse, a_tree_whose_input_is_read_twice) {
  const NodeId x = s.state(1), y = s.state(2), a = s.tanh(x), b = s.exp(x), c = s.op("cmult", {a, b}), d = s.add(c, y);
  s.run(PassId::Fuse);
  s.is(d, "_fused", {x, y});
  s.has_formula(d, "add(cmult(tanh(x0), exp(x0)), x1)");
  for (const NodeId i : {a, b}) s.is_inside(i, d);
  s.has_uses(x, 1);
}

CHECK(fuse, constants) {
  const NodeId x = s.state(1), a = s.op("elu", {x}, {}, {word(.5f)}), b = s.exp(a);
  s.run(PassId::Fuse);
  s.is(b, "_fused_with_constants", {x}, {}, {word(1), word(.5f)});
  s.is_inside(a, b);
}

CHECK(fuse, a_sum_of_several) {
  const NodeId x = s.state(1), y = s.state(2), z = s.state(3), a = s.op("esum", {x, s.tanh(y), z});
  s.run(PassId::Fuse);
  s.is(a, "_fused", {x, y, z});
}

CHECK(fuse, up_to_where_it_is_full) {
  NodeId x = s.state(1);
  Nodes chain;
  for (u32 k = 0; k < 30; ++k) chain.push_back(x = s.tanh(x));
  s.expect(s.run(PassId::Fuse) == 2, "two nodes for 30 steps");
  s.is(chain[23], "_fused", {chain[0] - 1});
  s.is(chain[29], "_fused", {chain[23]});
}

CHECK(fuse, leaves_a_single_op) {
  s.tanh(s.state(1));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_what_is_held) {
  s.tanh(s.held(s.exp(s.state(1))));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_what_is_read_again) {
  const NodeId a = s.exp(s.state(1));
  s.softmax(s.tanh(a));
  s.softmax(a);
  const NodeId b = s.exp(s.state(2));
  s.op("cmult", {b, b});
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_small_values) {
  s.tanh(s.exp(s.softmax(s.row(1, 7))));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_other_shapes) {
  s.add(s.softmax(s.input({16, 3})), s.exp(s.state(1)));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_what_is_read_through_an_alias) {
  s.tanh(s.op("reshape", {s.exp(s.state(1))}, ints({2, 4, 4, 1})));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_weights) {
  s.product(s.tanh(s.exp(s.square())), s.state(1));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_what_is_inside_a_cell) {
  s.tanh(s.inner(s.exp(s.state(1))));
  s.inner(s.tanh(s.exp(s.state(1))));
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_what_stands_before_a_checkpoint) {
  const NodeId a = s.exp(s.state(1));
  s.g.checkpoint();
  s.tanh(a);
  s.leaves(PassId::Fuse);
}

CHECK(fuse, leaves_another_lane) {
  const NodeId x = s.state(1), a = s.exp(x), b = s.tanh(a);
  s.leaves(PassId::Fuse, {{x, a}, {b}});
}
