// The scores of additive attention: rewrite/rules/attention.cc.
#include "graph_of.h"
using namespace checks;

namespace {
struct Scores {
  NodeId v, keys, query, sum, tanh, product;
};
Scores scores(Sketch& s, bool swapped = false, u32 rows = 1) {
  Scores of;
  of.v = s.weight({rows, 16});
  of.keys = s.softmax(s.input({16, 5}));
  of.query = s.state(1);
  of.sum = swapped ? s.add(of.query, of.keys) : s.add(of.keys, of.query);
  of.tanh = s.tanh(of.sum);
  of.product = s.product(of.v, of.tanh);
  return of;
}
}  // namespace

CHECK(attention, keys_and_query_in_either_order) {
  for (const bool swapped : {false, true}) {
    const Scores of = scores(s, swapped);
    s.expect(s.run(PassId::Attention) == 1, "one node");
    s.is(of.product, "_attention_scores", {of.v, of.keys, of.query});
    s.is_inside(of.sum, of.tanh);
    s.is_inside(of.tanh, of.product);
    s.has_uses(of.keys, 1);
    s.has_uses(of.query, 1);
    s.same_but({of.sum, of.tanh, of.product});
  }
}

CHECK(attention, leaves_what_is_held) {
  s.held(scores(s).sum);
  s.held(scores(s).tanh);
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_what_is_read_again) {
  s.softmax(scores(s).sum);
  s.softmax(scores(s).tanh);
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_several_rows) {
  scores(s, false, 2);
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_other_functions) {
  const NodeId v = s.weight({1, 16}), keys = s.softmax(s.input({16, 5})), query = s.state(1);
  s.product(v, s.op("logistic", {s.add(keys, query)}));
  s.product(v, s.tanh(s.op("cmult", {keys, query})));
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_a_query_of_each_key_and_mini_batches) {
  const NodeId v = s.weight({1, 16}), keys = s.softmax(s.input({16, 5}));
  s.product(v, s.tanh(s.add(keys, s.softmax(s.input({16, 5})))));
  s.product(v, s.tanh(s.add(keys, s.batch({s.state(1), s.state(2)}))));
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_weights) {
  const NodeId v = s.weight({1, 16});
  s.product(v, s.tanh(s.add(s.softmax(s.input({16, 5})), s.bias())));
  s.product(v, s.tanh(s.add(s.weight({16, 5}), s.state(1))));
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_a_row_that_is_computed) {
  s.product(s.softmax(s.input({1, 16})), s.tanh(s.add(s.softmax(s.input({16, 5})), s.state(1))));
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_what_is_inside_a_cell) {
  s.inner(scores(s).tanh);
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_what_stands_before_a_checkpoint) {
  const NodeId v = s.weight({1, 16}), sum = s.add(s.softmax(s.input({16, 5})), s.state(1));
  s.g.checkpoint();
  s.product(v, s.tanh(sum));
  s.leaves(PassId::Attention);
}

CHECK(attention, leaves_another_lane) {
  const Scores of = scores(s);
  s.leaves(PassId::Attention, {{of.keys, of.query, of.sum, of.tanh}, {of.product}});
}
