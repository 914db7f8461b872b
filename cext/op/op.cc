// The registry of ops: filled by static initialisers of ops/*.cc, read-only afterwards.
#include "op/op.h"

#include <deque>
#include <unordered_map>

#include "op/called.h"

namespace dnl {

const OpDef* g_op_table[kMaxOps];

namespace {

struct Registry {
  std::deque<OpDef> defs;  // addresses of entries never change
  std::unordered_map<std::string, OpId> ids;
};
Registry& registry() {
  static Registry r;
  return r;
}

}  // namespace

namespace {

// "v: index* = 0" -> an attribute; nothing for arguments (expr, exprs).
void parse_parameter(const std::string& text, OpDef& def) {
  auto trim = [](std::string s) {
    const std::size_t a = s.find_first_not_of(' '), b = s.find_last_not_of(' ');
    return a == std::string::npos ? std::string() : s.substr(a, b - a + 1);
  };
  const std::size_t colon = text.find(':');
  DNL_INTERNAL(colon != std::string::npos, "op signature: a parameter needs a type: " + text);
  std::string type = trim(text.substr(colon + 1, text.find('=') - colon - 1));
  if (type == "expr" || type == "exprs") return;
  AttrSpec a{trim(text.substr(0, colon)), AttrKind::Int, type == "seed"};
  if (type.back() == '*') {
    a.member = true;
    type.pop_back();
  }
  if (type == "float")
    a.kind = AttrKind::Float;
  else if (type == "ints" || type == "dims" || type == "index")
    a.kind = AttrKind::Ints;
  else if (type == "floats")
    a.kind = AttrKind::Floats;
  else if (type == "seed")
    a.kind = AttrKind::Seed;
  else
    DNL_INTERNAL(type == "int" || type == "bool" || type == "size",
                 "op signature: unknown type " + type + " in " + def.signature);
  def.has_member_attrs |= a.member;
  def.attrs.push_back(a);
}

}  // namespace

OpId register_op(void (*entry)(OpDef& op)) {
  OpDef def;
  entry(def);
  DNL_INTERNAL(def.signature && def.doc, "an op entry needs a signature and a doc");
  const std::string s = def.signature;
  const std::size_t open = s.find('('), close = s.rfind(')');
  DNL_INTERNAL(open != std::string::npos && close != std::string::npos, "op signature without parentheses: " + s);
  DNL_INTERNAL(!def.args.empty() || s.find("expr") == std::string::npos, "op entry without args: " + s);
  DNL_INTERNAL(def.shape, "op entry without a shape rule: " + s);
  def.name = s.substr(0, open);
  while (def.fixed_args < static_cast<int>(def.args.size()) && !def.args[def.fixed_args].list) ++def.fixed_args;
  int inside = 0;  // commas inside a default such as (1, 0) do not separate parameters
  for (std::size_t at = open + 1, i = at; i <= close && at < close; ++i) {
    if (i < close && (s[i] == '(' || s[i] == '[')) ++inside;
    if (i < close && (s[i] == ')' || s[i] == ']')) --inside;
    if (i < close && (s[i] != ',' || inside)) continue;
    parse_parameter(s.substr(at, i - at), def);
    at = i + 1;
  }
  Registry& r = registry();
  DNL_INTERNAL(!r.ids.count(def.name), "op registered twice: " + def.name);
  const OpId id = static_cast<OpId>(r.defs.size());
  r.ids[def.name] = id;
  DNL_INTERNAL(id < kMaxOps, "too many ops");
  r.defs.push_back(std::move(def));
  g_op_table[id] = &r.defs.back();
  return id;
}

int op_count() { return static_cast<int>(registry().defs.size()); }

OpId op_by_name(const std::string& name) {
  auto it = registry().ids.find(name);
  DNL_INTERNAL(it != registry().ids.end(), "no op named " + name);
  return it->second;
}

void ShapeIn::bad(const std::string& what) const {
  std::string s = "[" + called(*this) + "] " + what;
  for (int i = 0; i < nargs && i < 16; ++i) s += (i ? ", " : "; got ") + arg[i]->text();
  if (nargs > 16) s += ", ... (" + std::to_string(nargs) + " arguments)";
  fail_value(s);
}

u32 ShapeIn::common_batch() const {
  u32 b = 1;
  for (int i = 0; i < nargs; ++i) {
    if (arg[i]->bd == 1) continue;
    if (b != 1 && b != arg[i]->bd) bad("batch sizes must be equal or 1");
    b = arg[i]->bd;
  }
  return b;
}

}  // namespace dnl
