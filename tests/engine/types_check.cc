// Numbers of unlike types: shapes, and the graph's signatures. Compiled and run by test_types.py; ends with 0.
#include <cstdio>

#include "graph/graph.h"

using namespace dnl;

namespace {

int g_failed = 0;
void expect(bool ok, const char* what) {
  if (!ok) std::printf("not so: %s\n", what);
  g_failed += !ok;
}

const OpId twice = register_op([](OpDef& op) {
  op.signature = "twice(x: expr)";
  op.doc = "2 x";
  op.args = {{"x"}};
  op.shape = [](const ShapeIn& in) -> ShapeOut { return in[0]; };
  op.forward = [](const Call&) {};
});

}  // namespace

int main() {
  constexpr DType other = static_cast<DType>(1);  // a type that does not exist yet
  const Dim floats{3, 2};
  Dim others = floats;
  others.type = other;
  expect(floats == Dim({3, 2}), "equal shapes of one type are equal");
  expect(floats != others, "equal shapes of unlike types are not");
  expect(floats.same_shape(others) && floats.like(others), "but their dims are");

  Graph g(*backend_by_name("null"));
  NodeId x[4], y[4];
  for (int k = 0; k < 4; ++k) x[k] = g.add_input(k % 2 ? others : floats);
  for (int k = 0; k < 4; ++k) y[k] = g.add(twice, x + k, 1, nullptr, 0, nullptr, 0);
  expect(g.node(y[0]).sig == g.node(y[2]).sig && g.node(y[1]).sig == g.node(y[3]).sig, "one type is one signature");
  expect(g.node(y[0]).sig != g.node(y[1]).sig, "unlike types are unlike signatures");
  expect(g.dim(y[1]).type == other && g.dim(y[0]).type == DType::F32, "results are of the type of the argument");
  return g_failed;
}
