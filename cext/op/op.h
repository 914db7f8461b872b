// What an op is: one entry that says everything about it.
//
// An entry (OpDef) stands in one .cc file of ops/ and holds the Python signature, the doc, the shape rule, the batch
// rule of each argument, the kind of each attribute, and the CPU kernels. All else is derived: the Python function and
// its docstring, the stub, the id, the signature used for batching, gathers, gradient bookkeeping.
//
// The contract of kernels is told at Call and OpDef below. An op never sees the graph, the plan or other ops.
// Who may include: ops/, backends/, graph/, schedule/, exec/. Includes: base/.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/rows.h"

namespace dnl {

class Transposes;

// How an argument takes part in batching.
enum class Batch : u8 {
  Stack,   // each member brings its own
  Share,   // one and the same node for all members; it is part of the signature
  Weight,  // shared when the argument is made of parameters alone (a weight), stacked otherwise
};

// How a kernel reads a stacked argument. Addresses may be any; the layout tries to make them good.
enum class Access : u8 {
  Rows,  // wherever they are
  Near,  // the members' rows had better lie one behind the other: a product with a shared matrix reads them as columns
  AlwaysNear,  // the same whether anything is shared or not: rows of several members are read as one
};

struct ArgSpec {
  const char* name;
  Batch batch = Batch::Stack;
  Access access = Access::Rows;
  bool list = false;  // repeats: the specs marked list stand last and are cycled through for the remaining arguments
};
inline ArgSpec each(const char* name, Batch batch = Batch::Stack, Access access = Access::Rows) {
  return {name, batch, access, true};
}

// Attributes are 32-bit words. Key attributes are part of the signature; member attributes may differ between members
// of a batch. Key words stand in order of declaration, member words likewise. A list is its length followed by its
// items. Attributes are read from the op's Python signature, where a parameter is `name: type` or `name: type =
// default`:
//   expr, exprs           an argument; a list of arguments (anything iterable)
//   int, float, bool      one word
//   size                  an int: the size of a mini-batch
//   ints, floats          a list
//   index, dims           an int or a list of ints; stored as a list
//   seed                  two words from the graph's generator; not visible in Python; always per member
// and a type ending in * is a member attribute: `v: index*`.
enum class AttrKind : u8 { Int, Float, Ints, Floats, Seed };
struct AttrSpec {
  std::string name;
  AttrKind kind;
  bool member;
};

union Word {
  i32 i;
  u32 u;
  float f;
};
static_assert(sizeof(Word) == 4, "attributes are 32-bit words");

// The shape rule's input: dims of the arguments and key attributes.
struct ShapeIn {
  const struct OpDef& op;
  int nargs;
  const Dim* const* arg;
  const Word* key;
  int nkey;

  const Dim& operator[](int i) const { return *arg[i]; }
  // Throws Error(Value): "[op] what; got {..}, {..}".
  [[noreturn]] void bad(const std::string& what) const;
  void need(bool ok, const char* what) const {
    if (!ok) bad(what);
  }
  // The key word at `k`, a dim of argument 0; error if it has no such dim.
  u32 dim_at(int k) const {
    need(key[k].i >= 0 && key[k].u < arg[0]->nd, "there is no such dim");
    return key[k].u;
  }
  // The common batch size of all arguments; error if they differ (1 goes with anything).
  u32 common_batch() const;
};

// The shape rule's result. Output 0 is the value of the node; outputs 1..visible-1 are further values (a cell state);
// the rest are hidden: kept from forward for backward. `alias`: the value is a contiguous part of argument 0 and no
// kernel runs; the op's alias_offset says where it begins.
constexpr int kMaxOutputs = 4;
struct ShapeOut {
  Dim dim[kMaxOutputs];
  u8 visible = 1;
  u8 total = 1;
  bool alias = false;
  bool partial =
      false;  // arguments larger than the result are read in part: their gradients are added to, not assigned
  ShapeOut() = default;
  ShapeOut(const Dim& d) { dim[0] = d; }  // NOLINT: the common case reads `return in[0];`
  ShapeOut& hidden(const Dim& d) {
    dim[total++] = d;
    return *this;
  }
};

// Scratch memory of one call: uninitialised, there until the call returns.
class Scratch {
 public:
  // For kernels: in the backend's memory.
  virtual float* alloc(std::size_t floats) = 0;
  // For the op itself: in the host's.
  virtual void* list(std::size_t bytes) = 0;
  template <class T>
  T* array(std::size_t n) {
    return static_cast<T*>(list(n * sizeof(T)));
  }

 protected:
  ~Scratch() = default;
};

// One batched call: `members` nodes of one signature.
struct Call {
  const struct OpDef* op;
  int members;
  int of_signature;         // members of this signature in all calls of the plan
  std::uint32_t signature;  // its number in the graph
  int nargs;
  const Dim* const* arg_dim;  // of one member
  int n_outputs;              // hidden ones included
  int visible;                // less these
  const Dim* out_dim;         // of each output, of one member
  const Rows* x;              // arguments; a shared one has stride 0
  const bool* shared;         // per argument: shared in this signature
  const Rows* y;              // outputs, regular and packed unless `members` is a part of a batch or `over` is set
  const Word* key;
  const Word* const* member;  // member attributes, one pointer per member; null when the op has none
  Scratch* scratch;

  // Members differ in shape (OpDef::ragged): the dims of argument j of member m at m * (nargs + 1) + j, behind these
  // those of output 0. Null: members are alike. Of what differs arg_dim and out_dim have those of some member.
  const Dim* const* dims = nullptr;

  // Backward only.
  const Rows* dy;   // gradients of the outputs. Visible ones hold the incoming gradient; a hidden one is uninitialised
                    // memory the op may use to carry something from backward to backward_shared
  const Rows* dx;   // where gradients of the arguments go; dx[j].wanted() is false when nobody needs it
  const bool* acc;  // per argument: add to what is there (true) or overwrite (false)
  Transposes* transposes = nullptr;  // of the pass, where the backend keeps some: kernels/transposes.h

  bool over = false;  // Over::Arg0 is granted: the last output lies where argument 0 lies, which holds its value before
                      // forward and must not be read in backward
  bool restore = false;  // forward once more, of what lies over arguments or parts of them alone (over, op/fused.h):
                         // outputs that have memory of their own hold their values and must not be written
  bool partial = false;  // ShapeOut::partial: of an argument larger than the result a part is added to or overwritten
  bool kept = false;     // backward only. Keep::Arg0 is granted: acc[0] is false, and what backward writes to dx[0] is
                         // found there again by backward_shared. The same for all calls of a signature in one pass

  std::size_t arg_size(int j) const { return arg_dim[j]->size(); }
  std::size_t out_size(int o = 0) const { return out_dim[o].size(); }
  // Of one member, whether they are alike or not.
  const Dim& arg(int j, int m) const { return dims ? *dims[m * (nargs + 1) + j] : *arg_dim[j]; }
  const Dim& out(int m) const { return dims ? *dims[m * (nargs + 1) + nargs] : out_dim[0]; }
  // Where batch element e begins in a row of argument j; an argument without a batch is repeated.
  std::ptrdiff_t item(int j, std::ptrdiff_t e) const {
    return arg_dim[j]->bd == 1 ? 0 : e * static_cast<std::ptrdiff_t>(arg_dim[j]->batch_size());
  }
};

// What backward_shared would like to find again: the gradient of argument 0 that backward wrote. The executor grants it
// (Call::kept) where nobody else adds to these gradients; an op must do without.
enum class Keep : u8 { Nothing, Arg0 };

// Whether the last output, a hidden one of the shape of argument 0, may be written where that argument lies. Granted
// (Call::over) where nobody else reads the argument: activations over their sums save a slab and a pass over memory.
// Then dx[0] may be the memory of this output, too: backward reads a number of it before it writes the gradient there,
// and backward_shared does not read it.
enum class Over : u8 { Nothing, Arg0 };

// When gradients of shared arguments are formed: by backward_shared at the end, or, where one call has all members of a
// signature, by backward, together with those of stacked arguments. Then it finds dx of shared arguments, too, to which
// it always adds; else they are not wanted there. EitherWay: by backward, but most at the end where threads may share
// the work out.
enum class Shared : u8 { AtEnd, WithStacked, EitherWay };

// Ops that act element by element, so that chains of them can run as one (op/fused.h): a formula of the kernels by its
// number, or the sum of all arguments.
enum class Formula : u8 { None, Unary, Binary, Sum };

// An entry sets what it has, by name; all else is as here.
struct OpDef {
  // Python signature: "affine_transform(es: exprs)", "elu(x: expr, alpha: float = 1.0)". A name that begins with an
  // underscore is for the library's own use.
  const char* signature = nullptr;
  const char* doc = nullptr;  // first line what it does; then shapes, errors, source of the formula
  std::vector<ArgSpec> args;
  // There are two specs, both lists: the first key word says how many arguments are the first one's.
  bool two_lists = false;
  ShapeOut (*shape)(const ShapeIn&) = nullptr;

  // y from x. Outputs are uninitialised memory.
  void (*forward)(const Call&) = nullptr;
  // Gradients of the stacked arguments, for all members. Called once per batch, in reverse order.
  // Must honour acc[j]; when a row address occurs twice in dx[j], acc[j] is true.
  void (*backward)(const Call&) = nullptr;
  // Gradient of the shared argument `wrt`, called once for all members of the signature after their backward calls.
  // Always adds to dx[wrt].
  void (*backward_shared)(const Call&, int wrt) = nullptr;

  // Checks of member attributes against the shapes, when the node is made (an index out of range).
  void (*check)(const ShapeIn&, const Word* member) = nullptr;
  // Where the value begins inside argument 0, in floats, for signatures whose shape rule said alias.
  std::size_t (*alias_offset)(const ShapeIn&, const Word* member) = nullptr;
  // Members of one call may differ in some lengths, such as the number of words of a source: sets these dims of stacked
  // arguments to 0, which leaves what must be equal, and returns true. False: there are none in this signature. Outputs
  // but the first must not depend on them. Kernels then ask Call::arg() and out(), and output 0 may be listed.
  bool (*ragged)(const ShapeIn&, const bool* shared, Dim* arg) = nullptr;
  // The public function that an internal op is, or is the most of: messages and tables say so. Null: its name, without
  // the underscore of an internal one.
  const char* function = nullptr;
  // What programs write where there is no function: "x + y". Null: they call its function.
  const char* written = nullptr;
  // For people, what an internal op does in terms of the public ones: "matmul(tanh(add))". Null: its function.
  // `whole`: however long it is.
  std::string (*text)(int nargs, const Word* key, bool whole) = nullptr;
  // text() names several functions: a pass makes such nodes, and text() takes only keys that it makes.
  bool composed = false;
  // What a table calls all of them, for ops that have a text(). Null: its function.
  const char* family = nullptr;

  // ---- traits: gradients and memory
  bool no_grad = false;  // the value is a constant for differentiation
  Keep keep = Keep::Nothing;
  Over over = Over::Nothing;
  Shared shared = Shared::AtEnd;
  // The first of the shared arguments whose gradients are formed best in one go with that of `wrt`; null: each by
  // itself.
  int (*formed_with)(int nargs, const Word* key, int wrt) = nullptr;
  // Forms the gradient of rows that are one in memory once, if their gradients are one, too: they stay so.
  bool unites_rows = false;

  // ---- traits: where it runs
  // Numbers are read and written by kernels and products alone (kernels/kernels.h, gemm.h): the op runs wherever these
  // do. Else other backends than the CPU's have it run on the host.
  bool in_kernels = false;
  bool keeps_addresses = false;  // in an output, for backward: only where memory is the host's

  // ---- traits: threads
  bool joins = false;    // sums examples up at the end of a program (esum of losses); see schedule/split.h
  bool batches = false;  // makes a mini-batch of examples; likewise
  bool by_item = false;  // elements of a mini-batch by hand are computed as members are (op/intra_op.h)

  // ---- traits: what is asked of values
  bool leaves_out = false;  // an infinity is no mistake: it stands for what was left out (check_validity)

  // ---- traits: what passes over the graph look for (rewrite/rules/)
  Formula formula = Formula::None;
  u8 formula_id = 0;
  bool reads_value_only = false;  // of a formula: what its gradient needs besides what comes in is the value
  bool joinable = false;          // an affine map: several of the same inputs can become one node (join.cc)
  bool in_parts = false;          // several maps: read in parts by fused nodes, each part by one (join.cc)
  bool concatenates = false;      // products may take its parts instead (concat.cc)

  // ---- filled in by register_op, from the signature
  std::string name;
  std::string function_name() const { return function ? function : name.substr(name[0] == '_'); }
  std::vector<AttrSpec> attrs;
  bool has_member_attrs = false;
  int fixed_args = 0;  // specs before those marked list

  const ArgSpec& arg_spec(int j, const Word* key) const {
    if (two_lists) return args[j >= key[0].i];
    if (j < fixed_args) return args[j];
    return args[fixed_args + (j - fixed_args) % (static_cast<int>(args.size()) - fixed_args)];
  }
  // f(attribute, where its words begin) for the member attributes of a node, whose words these are; how many words.
  template <class F>
  u32 each_member(const Word* words, F f) const {
    u32 at = 0;
    for (const AttrSpec& a : attrs) {
      if (!a.member) continue;
      f(a, at);
      switch (a.kind) {
        case AttrKind::Int:
        case AttrKind::Float: ++at; break;
        case AttrKind::Ints:
        case AttrKind::Floats: at += 1 + words[at].u; break;
        case AttrKind::Seed: at += 2; break;
      }
    }
    return at;
  }
};

// Registration, at namespace scope of the op's file:
//   const OpId id = register_op([](OpDef& op) {
//     op.signature = "...";
//     ...
//   });
// No entry can do without signature, doc, args and shape; without forward only aliases can.
using OpId = u16;
OpId register_op(void (*entry)(OpDef& op));
constexpr int kMaxOps = 1024;
extern const OpDef* g_op_table[kMaxOps];  // by id, filled by register_op
inline const OpDef& op_def(OpId id) { return *g_op_table[id]; }
int op_count();
// Throws Error(Internal) when there is none.
OpId op_by_name(const std::string& name);

}  // namespace dnl
