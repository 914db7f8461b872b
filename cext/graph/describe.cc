// What a node is, in words for people: messages, plans as text, pictures and explanations.
#include "graph/graph.h"

namespace dnl {

std::string Graph::op_text(NodeId i, bool whole) const {
  const Signature& s = signature(i);
  const OpDef& def = op_def(s.op);
  if (def.text) return def.text(static_cast<int>(s.call_nargs), key(nodes_[i].sig), whole);
  return def.function_name();
}

std::string Graph::describe(NodeId i) const {
  static const char* const leaf_names[] = {"", "input", "parameter", "lookup table", "lookup"};
  const Leaf leaf = signature(i).leaf;
  const std::string name = leaf != Leaf::None ? leaf_names[static_cast<int>(leaf)] : op_text(i, false);
  std::string where;
  if (nodes_[i].is(kMerged))
    where = ", the same as " + std::to_string(nodes_[i].root);
  else if (nodes_[i].is(kFused))
    where = " inside " + std::to_string(fused_into(i));
  else if (nodes_[i].is(kDead))
    where = ", which nothing needs";
  return name + " " + dim(i).text() + where;
}

}  // namespace dnl
