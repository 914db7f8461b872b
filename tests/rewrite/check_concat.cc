// Products of concatenations: rewrite/rules/concat.cc.
#include "graph_of.h"
using namespace checks;

// Only where some shape occurs twice are concatenations taken apart: here is one more.
static NodeId another(Sketch& s) { return s.concatenate({s.row(5), s.state(6)}); }

CHECK(concat, a_product) {
  another(s);
  const NodeId w = s.weight({16, 32}), x = s.row(1), h = s.state(2), both = s.concatenate({x, h});
  const NodeId y = s.product(w, both);
  s.expect(s.run(PassId::Concat) == 1, "one product");
  s.is(y, "_affine", {x, h, w, w}, ints({2, 0, 16, 0}));
  s.is_inside(both, y);
  s.has_uses(w, 2);
  s.has_uses(h, 1);
  s.has_uses(both, 0);
  s.same_but({w, both, y});
}

CHECK(concat, an_affine_map_of_other_vectors_too) {
  another(s);
  const NodeId w = s.weight({16, 32}), u = s.square(), b = s.bias(), x = s.row(1), h = s.state(2);
  const NodeId both = s.concatenate({x, h}), y = s.affine({b, u, h, w, both});
  s.run(PassId::Concat);
  s.is(y, "_affine", {h, x, h, b, u, w, w}, ints({3, 0, 0, 16, 1}));
  s.is_inside(both, y);
}

CHECK(concat, all_products_that_read_one) {
  another(s);
  const NodeId v = s.weight({16, 32}), w = s.weight({16, 32}), x = s.row(1), h = s.state(2);
  const NodeId both = s.concatenate({x, h}), y = s.product(v, both), z = s.product(w, both);
  s.expect(s.run(PassId::Concat) == 2, "two products");
  s.is(y, "_affine", {x, h, v, v});
  s.is(z, "_affine", {x, h, w, w});
  s.is_inside(both, y);
  s.has_uses(x, 2);
}

CHECK(concat, leaves_what_looks_nothing_up) {
  another(s);
  s.product(s.weight({16, 32}), s.concatenate({s.state(1), s.state(2)}));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_short_parts) {
  another(s);
  s.product(s.weight({16, 31}), s.concatenate({s.row(1), s.softmax(s.row(1, 15))}));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_many_parts) {
  another(s);
  s.product(s.weight({16, 80}), s.concatenate({s.row(1), s.row(2), s.row(3), s.row(4), s.row(5)}));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_columns) {
  another(s);
  s.product(s.square(), s.concatenate({s.row(1), s.state(2)}, 1));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_what_is_held) {
  another(s);
  s.product(s.weight({16, 32}), s.held(s.concatenate({s.row(1), s.state(2)})));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_what_something_else_reads) {
  another(s);
  const NodeId both = s.concatenate({s.row(1), s.state(2)});
  s.product(s.weight({16, 32}), both);
  s.softmax(both);
  s.leaves(PassId::Concat);
}

// Of a signature all are rewritten or none, so that they stay one batch.
CHECK(concat, leaves_products_that_others_run_with) {
  another(s);
  const NodeId w = s.weight({16, 32});
  s.product(w, s.concatenate({s.row(1), s.state(2)}));
  s.product(w, s.softmax(s.row(3, 32)));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_matrices_that_are_computed) {
  another(s);
  s.product(s.softmax(s.input({16, 32})), s.concatenate({s.row(1), s.state(2)}));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_what_is_inside_a_cell) {
  another(s);
  s.product(s.weight({16, 32}), s.inner(s.concatenate({s.row(1), s.state(2)})));
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_what_stands_before_a_checkpoint) {
  const NodeId both = s.concatenate({s.row(1), s.state(2)});
  s.g.checkpoint();
  another(s);
  another(s);
  s.product(s.weight({16, 32}), both);
  s.leaves(PassId::Concat);
}

CHECK(concat, leaves_what_another_lane_reads) {
  const NodeId more = another(s);
  const NodeId h = s.state(2), both = s.concatenate({s.row(1), h}), y = s.product(s.weight({16, 32}), both);
  s.leaves(PassId::Concat, {{more, h, both}, {y}});
}

// No word can occur twice: parts are not faster than the whole.
CHECK(concat, leaves_one_of_its_shape) {
  s.product(s.weight({16, 32}), s.concatenate({s.row(1), s.state(2)}));
  s.product(s.weight({16, 48}), s.concatenate({s.row(1), s.row(3), s.state(2)}));
  s.leaves(PassId::Concat);
}
