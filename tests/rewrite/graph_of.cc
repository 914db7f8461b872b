#include "graph_of.h"

#include <algorithm>
#include <cstdio>

namespace checks {

std::map<std::string, Check>& all_checks() {
  static std::map<std::string, Check> all;
  return all;
}

Words ints(std::initializer_list<int> words) {
  Words out;
  for (int v : words) out.push_back(word(v));
  return out;
}

Words list(std::initializer_list<int> items) {
  Words out = ints(items);
  out.insert(out.begin(), word(static_cast<int>(items.size())));
  return out;
}

NodeId Sketch::row(u32 k, u32 n) {
  auto at = tables_.find(n);
  if (at == tables_.end()) at = tables_.emplace(n, g.add_table(std::make_shared<LookupTable>(Dim{n}, 100))).first;
  return g.add_lookup(at->second, &k, 1, false, true);
}

NodeId Sketch::op(const char* name, Nodes args, Words key, Words member) {
  return g.add(op_by_name(name), args.data(), static_cast<int>(args.size()), key.data(), static_cast<int>(key.size()),
               member.data(), static_cast<int>(member.size()));
}

u32 Sketch::run(PassSet on, PassId counted, const std::vector<Nodes>& lanes, NodeId unseen) {
  before_.clear();
  for (NodeId i = 0; i < g.size(); ++i) before_.push_back(text(i));
  Pipeline pipeline(g);
  pipeline.begin(g.marked(), unseen, on, true);
  Vec<NodeId> ops;
  pipeline.see_all(ops);
  pipeline.drop_dead();
  std::vector<Vec<NodeId>> of_lanes(lanes.size());
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    for (NodeId i : lanes[l]) of_lanes[l].push_back(i);
    pipeline.add_lane(of_lanes[l]);
  }
  pipeline.run(ops);
  return changes_ = pipeline.changes(counted);
}

// All there is to say about a node.
std::string Sketch::text(NodeId i) const {
  const Node& n = g.node(i);
  const Signature& sig = g.signature(i);
  std::string out = g.describe(i) + " flags " + std::to_string(n.flags) + " uses " + std::to_string(n.readers) +
                    " depth " + std::to_string(n.depth) + " in " + std::to_string(n.producer) + " " +
                    std::to_string(n.root) + " " + std::to_string(n.offset) + " items " + std::to_string(sig.items);
  if (n.is(kLeaf)) return out;
  for (u32 j = 0; j < sig.nargs; ++j) out += " #" + std::to_string(g.operands(i)[j]);
  for (u32 k = 0; k < sig.nkey; ++k) out += " key " + std::to_string(g.key(n.sig)[k].u);
  if (sig.leaf != Leaf::None || sig.alias || n.is(kOutput)) return out;
  for (u32 k = 0; k < g.member_words(i); ++k) out += " word " + std::to_string(g.member(i)[k].u);
  return out;
}

void Sketch::expect(bool ok, const std::string& what, int line) {
  if (!ok) std::printf("line %d: %s\n", line, what.c_str());
  failed += !ok;
}

void Sketch::is(NodeId i, const char* op, const Nodes& args, const Words& key, const Words& member, int line) {
  const std::string what = "node " + std::to_string(i) + ", " + text(i) + ", is not that " + op;
  if (!g.is_op(i) || op_def(g.signature(i).op).name != std::string(op) || g.nargs(i) != args.size())
    return expect(false, what, line);
  for (std::size_t j = 0; j < args.size(); ++j) expect(g.source(g.operands(i)[j]) == args[j], what, line);
  const auto equal = [](const Words& a, const Word* b) {
    return std::equal(a.begin(), a.end(), b, [](Word v, Word w) { return v.u == w.u; });
  };
  if (!key.empty()) expect(g.signature(i).nkey == key.size() && equal(key, g.key(g.node(i).sig)), what, line);
  if (!member.empty()) expect(g.member_words(i) == member.size() && equal(member, g.member(i)), what, line);
}

void Sketch::is_inside(NodeId i, NodeId into, int line) {
  expect(g.node(i).is(kFused) && g.node(i).offset == into, text(i) + " is not inside " + std::to_string(into), line);
}

void Sketch::is_dead(NodeId i, int line) { expect(g.node(i).is(kDead), text(i) + " is not dead", line); }

void Sketch::is_alias(NodeId i, NodeId of, int line) {
  const Node& n = g.node(i);
  expect(n.is(kMerged) && n.is(kAlias) && n.root == of && n.producer == g.node(of).producer,
         text(i) + " is no alias of " + std::to_string(of), line);
}

void Sketch::has_uses(NodeId i, u32 n, int line) {
  expect(g.readers(i) == n, text(i) + " is not read " + std::to_string(n) + " times", line);
}

void Sketch::has_depth(NodeId i, u32 n, int line) {
  expect(g.node(i).depth == n, text(i) + " is not of depth " + std::to_string(n), line);
}

void Sketch::has_formula(NodeId i, const std::string& formula, int line) {
  expect(g.op_text(i, true) == formula, g.op_text(i, true) + " is not " + formula, line);
}

void Sketch::same_but(const Nodes& others, int line) {
  for (NodeId i = 0; i < g.size(); ++i)
    if (std::find(others.begin(), others.end(), i) == others.end())
      expect(text(i) == before_[i], "node " + std::to_string(i) + ", " + before_[i] + ", became " + text(i), line);
}

void Sketch::same(int line) {
  same_but({}, line);
  expect(changes_ == 0, "the pass says that it changed " + std::to_string(changes_) + " nodes", line);
}

}  // namespace checks

// With "pass/what" runs that check; with nothing names all.
int main(int argc, char** argv) {
  using namespace checks;
  if (argc < 2) {
    for (const auto& [name, check] : all_checks()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const auto found = all_checks().find(argv[1]);
  if (found == all_checks().end()) return std::printf("no check %s\n", argv[1]), 2;
  Sketch s;
  try {
    found->second(s);
  } catch (const Error& e) { s.expect(false, e.what(), 0); }
  return s.failed != 0;
}
