// Affine maps of the same inputs, and the chains that read parts of them: rewrite/rules/join.cc.
#include "graph_of.h"
using namespace checks;

namespace {

struct Gate {
  NodeId b, w, u, map;
};
Gate gate(Sketch& s, NodeId x, NodeId h) {
  Gate of{s.bias(), s.square(), s.square(), 0};
  of.map = s.affine({of.b, of.w, x, of.u, h});
  return of;
}
// A chain that reads both.
NodeId chain(Sketch& s, NodeId i, NodeId k) { return s.op("cmult", {s.op("logistic", {i}), s.tanh(k)}); }
// Each of these maps stays a node of its own.
void stay(Sketch& s, const Nodes& maps, const std::vector<Nodes>& lanes = {}, int line = __builtin_LINE()) {
  Nodes args[2];
  for (u32 k = 0; k < 2; ++k) args[k].assign(s.g.operands(maps[k]), s.g.operands(maps[k]) + s.g.nargs(maps[k]));
  const u32 op[] = {s.g.signature(maps[0]).op, s.g.signature(maps[1]).op};
  s.expect(s.run(PassId::Join, lanes) == 0, "none is joined", line);
  for (u32 k = 0; k < 2; ++k) s.is(maps[k], op_def(static_cast<OpId>(op[k])).name.c_str(), args[k], {}, {}, line);
}

}  // namespace

CHECK(join, gates_of_one_chain) {
  const NodeId x = s.state(1), h = s.state(2);
  const Gate i = gate(s, x, h), k = gate(s, x, h);
  const NodeId y = chain(s, i.map, k.map);
  s.expect(s.run(PassId::Join) == 3, "two maps and a chain");
  s.is(i.map, "_affines", {x, h, i.b, i.w, i.u, k.b, k.w, k.u}, ints({2, 0, 0, 1}));
  s.is_inside(k.map, i.map);
  s.is(y, "_fused", {i.map});
  s.has_formula(y, "cmult(logistic(x0), tanh(x1))");
  s.has_uses(x, 1);
  s.has_uses(i.map, 1);
  s.expect(s.g.dim(i.map).rows() == 32, "one result behind the other");
  s.expect(s.g.node(i.map).is(kOverwritten), "nobody can ask for the first map alone");
  s.expect(!s.g.node(i.map).is(kGradApart), "steps of one operand read it");
}

CHECK(join, what_a_step_of_two_operands_reads) {
  const NodeId x = s.state(1), p = s.product(s.square(), x), q = s.product(s.square(), x);
  const NodeId y = s.op("cmult", {p, q});
  s.run(PassId::Join);
  s.is(y, "_fused", {p});
  s.expect(s.g.node(p).is(kGradApart), "its gradient may not lie over its value");
}

// A map that was a sum is deeper than one that was a single node.
CHECK(join, maps_of_unlike_depths) {
  const NodeId x = s.state(1), w = s.square(), u = s.square(), b = s.bias(), c = s.bias();
  const NodeId sum = s.add(s.product(w, x), b), alone = s.affine({c, u, x});
  chain(s, sum, alone);
  s.has_depth(sum, 3);
  s.run(only(PassId::Sum) | only(PassId::Join), PassId::Join);
  s.is(sum, "_affines", {x, b, w, c, u}, ints({1, 0, 1}));
  s.is_inside(alone, sum);
  s.has_depth(sum, 2);
}

CHECK(join, more_than_twelve_are_two_nodes) {
  const NodeId x = s.state(1);
  Nodes maps;
  for (u32 k = 0; k < 14; ++k) s.tanh(maps.emplace_back(s.product(s.square(), x)));
  s.run(PassId::Join);
  for (u32 k : {0, 12}) s.expect(s.g.dim(maps[k]).rows() == (k ? 32u : 192u), "twelve, then two");
}

CHECK(join, leaves_them_without_chains) {
  const NodeId x = s.state(1), h = s.state(2);
  s.softmax(gate(s, x, h).map);
  s.softmax(gate(s, x, h).map);
  s.leaves(PassId::Join);
}

CHECK(join, leaves_chains_of_no_maps) {
  s.tanh(s.exp(s.state(1)));
  s.leaves(PassId::Join);
}

// A chain that reads joined maps is written with them, the other by the next pass.
CHECK(join, and_fuse_share_the_chains) {
  const NodeId x = s.state(1), h = s.state(2), other = s.tanh(s.exp(x));
  const Gate i = gate(s, x, h), k = gate(s, x, h);
  const NodeId y = chain(s, i.map, k.map);
  s.expect(s.run(only(PassId::Join) | only(PassId::Fuse), PassId::Fuse) == 1, "the chain that join left");
  s.is(y, "_fused", {i.map});
  s.is(other, "_fused", {x});
}

CHECK(join, leaves_them_when_it_is_off) {
  const NodeId x = s.state(1), h = s.state(2);
  const Gate i = gate(s, x, h), k = gate(s, x, h);
  const NodeId y = chain(s, i.map, k.map);
  s.expect(s.run(PassId::Fuse) == 1, "the chain alone");
  s.is(y, "_fused", {i.map, k.map});
}

CHECK(join, leaves_maps_of_other_inputs) {
  const NodeId x = s.state(1), h = s.state(2);
  const Gate i = gate(s, x, h), k = gate(s, h, x);
  chain(s, i.map, k.map);
  stay(s, {i.map, k.map});
}

CHECK(join, leaves_maps_with_and_without_a_bias) {
  const NodeId x = s.state(1), p = s.product(s.square(), x), q = s.affine({s.bias(), s.square(), x});
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_maps_with_and_without_a_gradient) {
  const auto frozen = std::make_shared<Parameter>(Dim{Sketch::kN, Sketch::kN});
  frozen->updated = false;
  const NodeId x = s.softmax(s.input()), p = s.product(s.g.add_parameter(frozen), x), q = s.product(s.square(), x);
  const NodeId y = s.op("cmult", {s.tanh(p), x});
  s.tanh(q);
  stay(s, {p, q});
  s.expect(!s.g.node(y).is(kNeedsGrad), "no gradient flows into it");
}

CHECK(join, leaves_the_same_map_once_more) {
  const NodeId x = s.state(1), w = s.square(), p = s.product(w, x), q = s.product(w, x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_maps_that_are_held) {
  const NodeId x = s.state(1), p = s.held(s.product(s.square(), x)), q = s.product(s.square(), x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_maps_that_are_read_again) {
  const NodeId x = s.state(1), p = s.product(s.square(), x), q = s.product(s.square(), x);
  chain(s, p, q);
  s.softmax(p);
  stay(s, {p, q});
}

CHECK(join, leaves_matrices_that_are_computed) {
  const NodeId x = s.state(1), p = s.product(s.softmax(s.square()), x), q = s.product(s.softmax(s.square()), x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_mini_batches) {
  const NodeId x = s.batch({s.state(1), s.state(2)}), p = s.product(s.square(), x), q = s.product(s.square(), x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_more_than_three_inputs) {
  const auto map = [&](NodeId x) {
    return s.affine({s.bias(), s.square(), x, s.square(), x, s.square(), x, s.square(), x});
  };
  const NodeId x = s.state(1), p = map(x), q = map(x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_maps_inside_a_cell) {
  const NodeId x = s.state(1), p = s.inner(s.product(s.square(), x)), q = s.product(s.square(), x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_what_stands_before_a_checkpoint) {
  const NodeId x = s.state(1), p = s.product(s.square(), x);
  s.g.checkpoint();
  const NodeId q = s.product(s.square(), x);
  chain(s, p, q);
  stay(s, {p, q});
}

CHECK(join, leaves_another_lane) {
  const NodeId x = s.state(1), p = s.product(s.square(), x), q = s.product(s.square(), x), a = s.tanh(p), b = s.tanh(q);
  stay(s, {p, q}, {{x, p, a}, {q, b}});
}

CHECK(join, leaves_what_reads_a_single_map) {
  const NodeId x = s.state(1);
  s.tanh(s.product(s.square(), x));
  s.softmax(x);
  s.run(PassId::Join);
  s.same();
}
