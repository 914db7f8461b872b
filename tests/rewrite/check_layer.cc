// Layers over concatenations: rewrite/rules/layer.cc.
#include "graph_of.h"
using namespace checks;

namespace {
struct Layer {
  NodeId b, w, left, right, parts, map, tanh;
};
// Of weights of its own, or of those of another one.
Layer layer(Sketch& s, const Layer* alike = nullptr, const char* function = "tanh") {
  Layer l;
  l.b = alike ? alike->b : s.bias();
  l.w = alike ? alike->w : s.weight({16, 32});
  l.left = s.row(1);
  l.right = s.state(2);
  l.parts = s.concatenate({l.left, l.right});
  l.map = s.affine({l.b, l.w, l.parts});
  l.tanh = s.op(function, {l.map});
  return l;
}
}  // namespace

CHECK(layer, two_of_the_same_weights) {
  const Layer one = layer(s), other = layer(s, &one);
  s.expect(s.run(PassId::Layer) == 2, "two nodes");
  for (const Layer& l : {one, other}) {
    s.is(l.tanh, "_layer", {l.b, l.w, l.left, l.right});
    s.is_inside(l.parts, l.map);
    s.is_inside(l.map, l.tanh);
    s.has_uses(l.right, 1);
  }
  s.has_uses(one.w, 2);
  s.same_but({one.b, one.w, one.parts, one.map, one.tanh, other.parts, other.map, other.tanh});
}

CHECK(layer, may_be_held_and_read_often) {
  const Layer l = layer(s);
  s.softmax(s.held(l.tanh));
  s.softmax(l.tanh);
  s.run(PassId::Layer);
  s.is(l.tanh, "_layer", {l.b, l.w, l.left, l.right});
}

CHECK(layer, leaves_what_is_held) {
  s.held(layer(s).parts);
  s.held(layer(s).map);
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_what_is_read_again) {
  s.softmax(layer(s).parts);
  s.softmax(layer(s).map);
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_functions_whose_gradients_need_more_than_their_values) {
  layer(s, nullptr, "rectify");
  layer(s, nullptr, "softsign");
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_maps_of_a_signature_some_of_which_are_none) {
  const Layer l = layer(s);
  s.softmax(s.affine({l.b, l.w, s.concatenate({s.row(3), s.state(4)})}));
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_maps_of_a_signature_with_two_functions) {
  const Layer l = layer(s);
  layer(s, &l, "logistic");
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_maps_of_a_signature_with_parts_of_other_sizes) {
  const Layer l = layer(s);
  s.tanh(s.affine({l.b, l.w, s.concatenate({s.row(1, 8), s.row(2, 24)})}));
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_products_and_other_vectors) {
  s.tanh(s.product(s.weight({16, 32}), s.concatenate({s.row(1), s.state(2)})));
  s.tanh(s.affine({s.bias(), s.square(), s.state(1)}));
  s.tanh(s.affine({s.bias(), s.weight({16, 32}), s.concatenate({s.row(1), s.state(2)}), s.square(), s.state(1)}));
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_computed_weights) {
  s.tanh(s.affine({s.state(3), s.weight({16, 32}), s.concatenate({s.row(1), s.state(2)})}));
  s.tanh(s.affine({s.bias(), s.softmax(s.input({16, 32})), s.concatenate({s.row(1), s.state(2)})}));
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_columns_mini_batches_and_many_parts) {
  const NodeId w = s.weight({16, 32}), columns = s.softmax(s.input({16, 3}));
  s.tanh(s.affine({s.bias(), w, s.concatenate({columns, s.softmax(s.input({16, 3}))})}));
  s.tanh(s.affine(
      {s.bias(), s.weight({16, 32}), s.concatenate({s.batch({s.row(1), s.row(2)}), s.batch({s.row(2), s.row(3)})})}));
  s.tanh(s.affine({s.bias(), s.weight({16, 36}),
                   s.concatenate({s.row(1, 4), s.row(2, 4), s.row(3, 4), s.row(4, 4), s.row(5, 4), s.row(6, 4),
                                  s.row(1, 4), s.row(2, 4), s.row(3, 4)})}));
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_what_is_inside_a_cell) {
  s.inner(layer(s).map);
  s.inner(layer(s).tanh);
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_what_stands_before_a_checkpoint) {
  const NodeId w = s.weight({16, 32}), map = s.affine({s.bias(), w, s.concatenate({s.row(1), s.state(2)})});
  s.g.checkpoint();
  s.tanh(map);
  s.leaves(PassId::Layer);
}

CHECK(layer, leaves_another_lane) {
  const Layer l = layer(s);
  s.leaves(PassId::Layer, {{l.right, l.parts}, {l.map, l.tanh}});
}
