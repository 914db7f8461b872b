// Losses with the map that makes their scores: rewrite/rules/loss.cc.
#include "graph_of.h"
using namespace checks;

CHECK(loss, of_an_affine_map) {
  const NodeId w = s.weight({20, 16}), b = s.weight({20}), x = s.state(1);
  const NodeId scores = s.affine({b, w, x}), loss = s.loss(scores);
  s.expect(s.run(PassId::Loss) == 1, "one loss");
  s.is(loss, "_affine_loss", {x, w, b}, {}, list({3}));
  s.is_inside(scores, loss);
  s.has_uses(x, 1);
  s.has_uses(scores, 0);
  s.has_depth(loss, 3);
  s.same_but({scores, loss});
}

CHECK(loss, of_a_product) {
  const NodeId w = s.weight({20, 16}), x = s.state(1), scores = s.product(w, x), loss = s.loss(scores);
  s.run(PassId::Loss);
  s.is(loss, "_affine_loss", {x, w}, {}, list({3}));
  s.is_inside(scores, loss);
}

CHECK(loss, of_a_product_and_a_bias_on_either_side) {
  const NodeId w = s.weight({20, 16}), b = s.weight({20}), x = s.state(1);
  const NodeId p = s.product(w, x), q = s.product(w, x), left = s.add(p, b), right = s.add(b, q);
  const NodeId of_left = s.loss(left), of_right = s.loss(right, {5});
  s.expect(s.run(PassId::Loss) == 2, "two losses");
  s.is(of_left, "_affine_loss", {x, w, b}, {}, list({3}));
  s.is(of_right, "_affine_loss", {x, w, b}, {}, list({5}));
  s.is_inside(p, left);
  s.is_inside(left, of_left);
  s.is_inside(q, right);
  s.is_inside(right, of_right);
}

CHECK(loss, of_a_mini_batch) {
  const NodeId w = s.weight({20, 16}), b = s.weight({20}), x = s.batch({s.state(1), s.state(2)});
  const NodeId scores = s.affine({b, w, x}), loss = s.loss(scores, {3, 4});
  s.run(PassId::Loss);
  s.is(loss, "_affine_loss", {x, w, b}, {}, list({3, 4}));
  s.is_inside(scores, loss);
}

CHECK(loss, leaves_scores_that_are_held) {
  const NodeId w = s.weight({20, 16}), b = s.weight({20}), x = s.state(1);
  s.loss(s.held(s.affine({b, w, x})));
  s.loss(s.add(s.held(s.product(w, x)), b));
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_scores_that_are_read_again) {
  const NodeId scores = s.product(s.weight({20, 16}), s.state(1));
  s.loss(scores);
  s.loss(scores);
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_a_bias_that_is_computed) {
  const NodeId w = s.weight({20, 16}), p = s.product(w, s.state(1));
  s.loss(s.add(p, s.softmax(s.row(1, 20))));
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_two_biases_and_two_terms) {
  const NodeId w = s.weight({20, 16}), u = s.weight({20, 16}), b = s.weight({20}), x = s.state(1);
  s.loss(s.add(s.affine({b, w, x}), b));
  s.loss(s.affine({b, w, x, u, x}));
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_a_matrix_that_is_computed) {
  const NodeId w = s.softmax(s.input({20, 16}));
  s.loss(s.product(w, s.state(1)));
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_other_losses_and_scores) {
  const NodeId w = s.weight({20, 16});
  s.op("logsumexp_dim", {s.product(w, s.state(1))}, ints({0}));
  s.loss(s.softmax(s.row(2)));
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_what_is_inside_a_cell) {
  const NodeId w = s.weight({20, 16}), x = s.state(1);
  s.inner(s.loss(s.product(w, x)));
  s.loss(s.inner(s.product(w, x)));
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_what_stands_before_a_checkpoint) {
  const NodeId scores = s.product(s.weight({20, 16}), s.state(1));
  s.g.checkpoint();
  s.loss(scores);
  s.leaves(PassId::Loss);
}

CHECK(loss, leaves_another_lane) {
  const NodeId x = s.state(1), scores = s.product(s.weight({20, 16}), x), loss = s.loss(scores);
  s.leaves(PassId::Loss, {{x, scores}, {loss}});
}
