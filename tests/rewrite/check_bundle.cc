// Mini-batches made of single nodes: rewrite/rules/bundle.cc.
#include "graph_of.h"
using namespace checks;

namespace {
void is_bundle(Sketch& s, NodeId i, u32 items, const char* op, const Nodes& args, int line = __builtin_LINE()) {
  s.is(i, op, args, {}, {}, line);
  s.expect(s.g.signature(i).items == items, "runs as so many members", line);
}
}  // namespace

CHECK(bundle, an_affine_map) {
  const NodeId w = s.weight({20, 16}), b = s.weight({20}), x = s.state(1), y = s.state(2), z = s.state(3);
  const NodeId many = s.batch({x, y, z}), map = s.affine({b, w, many});
  s.expect(s.run(PassId::Bundle) == 1, "one node");
  is_bundle(s, map, 3, "affine_transform", {b, w, x, y, z});
  s.expect(s.g.signature(map).call_nargs == 3, "a member takes three arguments");
  s.is_inside(many, map);
  s.has_uses(x, 1);
  s.has_uses(w, 1);
  s.has_uses(many, 0);
  s.expect(s.g.dim(map).bd == 3, "the shape is what it was");
  s.same_but({many, map});
}

CHECK(bundle, a_product_and_a_loss) {
  const NodeId w = s.weight({20, 16}), x = s.state(1), y = s.state(2), many = s.batch({x, y}), p = s.product(w, many);
  const NodeId of_loss = s.batch({x, y}), loss = s.op("_affine_loss", {of_loss, w}, {}, list({3, 4}));
  s.expect(s.run(PassId::Bundle) == 2, "two nodes");
  is_bundle(s, p, 2, "matmul", {w, x, y});
  is_bundle(s, loss, 2, "_affine_loss", {x, w, y});
  s.is_inside(of_loss, loss);
}

CHECK(bundle, a_concatenation_of_two_lists) {
  const NodeId x = s.state(1), y = s.state(2), z = s.row(3), u = s.row(4);
  const NodeId c = s.concatenate({s.batch({x, y}), s.batch({z, u})});
  s.run(PassId::Bundle);
  is_bundle(s, c, 2, "concatenate", {x, z, y, u});
}

CHECK(bundle, leaves_lists_that_are_held_or_read_again) {
  const NodeId w = s.weight({20, 16}), x = s.state(1), y = s.state(2), many = s.batch({x, y});
  s.product(w, s.held(s.batch({x, y})));
  s.product(w, many);
  s.softmax(many);
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_elements_that_are_mini_batches) {
  const NodeId two = s.softmax(s.input(Dim({16}, 2)));
  s.product(s.weight({20, 16}), s.batch({two, s.state(1)}));
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_what_is_no_list) {
  const NodeId two = s.softmax(s.input(Dim({16}, 2))), x = s.state(1);
  s.product(s.weight({20, 16}), two);
  s.concatenate({s.batch({x, x}), two});
  s.product(s.weight({20, 16}), s.add(two, two));
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_other_ops) {
  s.softmax(s.batch({s.state(1), s.state(2)}));
  s.loss(s.batch({s.state(1), s.state(2)}), {1, 2});
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_a_single_element) {
  s.product(s.weight({20, 16}), s.batch({s.state(1)}));
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_a_matrix_of_each_element) {
  s.product(s.softmax(s.input({20, 16})), s.batch({s.state(1), s.state(2)}));
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_what_is_inside_a_cell) {
  s.product(s.weight({20, 16}), s.inner(s.batch({s.state(1), s.state(2)})));
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_what_stands_before_a_checkpoint) {
  const NodeId many = s.batch({s.state(1), s.state(2)});
  s.g.checkpoint();
  s.product(s.weight({20, 16}), many);
  s.leaves(PassId::Bundle);
}

CHECK(bundle, leaves_another_lane) {
  const NodeId x = s.state(1), y = s.state(2), many = s.batch({x, y}), p = s.product(s.weight({20, 16}), many);
  s.leaves(PassId::Bundle, {{x, y, many}, {p}});
}
