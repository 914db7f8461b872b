// Sums of products and a bias: rewrite/rules/sum.cc.
#include "graph_of.h"
using namespace checks;

CHECK(sum, a_product_and_a_bias) {
  const NodeId w = s.square(), b = s.bias(), x = s.state(1), p = s.product(w, x), y = s.add(b, p);
  s.expect(s.run(PassId::Sum) == 1, "one sum");
  s.is(y, "affine_transform", {b, w, x});
  s.is_inside(p, y);
  s.has_uses(p, 0);
  s.has_uses(w, 1);
  s.has_uses(x, 1);
  s.has_depth(y, 3);
  s.same_but({p, y});
}

CHECK(sum, products_without_a_bias) {
  const NodeId w = s.square(), u = s.square(), x = s.state(1), h = s.state(2);
  const NodeId p = s.product(w, x), q = s.product(u, h), y = s.add(p, q);
  s.run(PassId::Sum);
  s.is(y, "_affine", {x, h, w, u}, ints({2, 0, 0, 0}));
  s.is_inside(p, y);
  s.is_inside(q, y);
}

CHECK(sum, sums_of_sums) {
  const NodeId w = s.square(), u = s.square(), b = s.bias(), x = s.state(1), h = s.state(2);
  const NodeId p = s.product(w, x), q = s.product(u, h), below = s.add(p, q), y = s.add(below, b);
  s.expect(s.run(PassId::Sum) == 1, "one node of two sums");
  s.is(y, "affine_transform", {b, w, x, u, h});
  for (const NodeId i : {p, q, below}) s.is_inside(i, y);
}

CHECK(sum, a_list_of_terms) {
  const NodeId w = s.square(), u = s.square(), b = s.bias(), x = s.state(1), h = s.state(2);
  const NodeId y = s.op("esum", {s.product(w, x), b, s.product(u, h)});
  s.run(PassId::Sum);
  s.is(y, "affine_transform", {b, w, x, u, h});
}

CHECK(sum, affine_maps_of_which_one_has_a_bias) {
  const NodeId w = s.square(), u = s.square(), b = s.bias(), x = s.state(1), h = s.state(2);
  const NodeId p = s.product(u, h), a = s.affine({b, w, x}), y = s.add(p, a);
  s.run(PassId::Sum);
  s.is(y, "affine_transform", {b, u, h, w, x});
  s.is_inside(a, y);
}

CHECK(sum, what_else_is_added_stays_in_the_sum) {
  const NodeId w = s.square(), u = s.square(), x = s.state(1), h = s.state(2), k = s.state(3);
  const NodeId p = s.product(w, x), q = s.product(u, h), y = s.op("esum", {p, k, q});
  s.run(PassId::Sum);
  s.is(q, "_affine", {x, h, w, u});
  s.is_inside(p, q);
  s.is(y, "add", {q, k});
}

CHECK(sum, leaves_one_product_among_other_terms) {
  s.op("esum", {s.product(s.square(), s.state(1)), s.bias(), s.state(2)});
  s.add(s.product(s.square(), s.state(1)), s.state(2));
  s.op("esum", {s.product(s.square(), s.state(1)), s.held(s.product(s.square(), s.state(2))), s.bias()});
  s.leaves(PassId::Sum);
}

CHECK(sum, leaves_products_that_are_held) {
  s.add(s.held(s.product(s.square(), s.state(1))), s.bias());
  s.leaves(PassId::Sum);
}

// One that is read again stays, and so do those of its signature, which run with it.
CHECK(sum, leaves_products_that_are_read_again) {
  const NodeId w = s.square(), b = s.bias(), p = s.product(w, s.state(1)), q = s.product(w, s.state(2));
  s.add(p, b);
  s.softmax(p);
  s.add(q, b);
  s.leaves(PassId::Sum);
}

CHECK(sum, leaves_a_sum_that_is_held) {
  const NodeId w = s.square(), u = s.square(), x = s.state(1), h = s.state(2), b = s.bias();
  const NodeId below = s.held(s.add(s.product(w, x), s.product(u, h))), y = s.add(below, b);
  s.run(PassId::Sum);
  s.is(below, "_affine", {x, h, w, u});
  s.is(y, "add", {below, b});
}

CHECK(sum, leaves_matrices_that_are_computed) {
  s.add(s.product(s.softmax(s.input({16, 16})), s.state(1)), s.bias());
  s.leaves(PassId::Sum);
}

CHECK(sum, leaves_products_of_another_shape) {
  s.add(s.softmax(s.input({16, 3})), s.product(s.square(), s.state(1)));
  s.add(s.product(s.square(), s.softmax(s.input({16, 3}))), s.bias());
  s.leaves(PassId::Sum);
}

CHECK(sum, leaves_more_than_eight_terms) {
  Nodes terms;
  for (u32 k = 0; k < 9; ++k) terms.push_back(s.product(s.square(), s.state(k)));
  s.op("esum", terms);
  s.leaves(PassId::Sum);
}

// Words of all sentences are one batch.
CHECK(sum, leaves_long_rows_of_a_table_out_of_what_is_computed) {
  const NodeId w = s.weight({16, 200}), v = s.weight({16, 200}), u = s.square();
  const NodeId of_row = s.product(w, s.row(1, 200)), x = s.softmax(s.row(2, 200)), h = s.state(2);
  const NodeId p = s.product(v, x), q = s.product(u, h), y = s.op("esum", {of_row, p, q});
  s.run(PassId::Sum);
  s.is(of_row, "matmul", {w, of_row - 1});
  s.is(q, "_affine", {x, h, v, u});
  s.is(y, "add", {q, of_row});
}

CHECK(sum, leaves_products_inside_a_cell) {
  s.add(s.bias(), s.inner(s.product(s.square(), s.state(1))));
  s.leaves(PassId::Sum);
}

CHECK(sum, leaves_what_stands_before_a_checkpoint) {
  const NodeId p = s.product(s.square(), s.state(1)), b = s.bias();
  s.g.checkpoint();
  s.add(p, b);
  s.leaves(PassId::Sum);
}

CHECK(sum, leaves_another_lane) {
  const NodeId b = s.bias(), x = s.state(1), p = s.product(s.square(), x), y = s.add(p, b);
  s.leaves(PassId::Sum, {{x, p}, {y}});
}
