// Graph: the nodes of one computation, built anew per example, in flat arrays that a reset empties in O(1).
//
// Adding a node interns its signature (what must be equal for two nodes to run as one batch) by full comparison, and
// the shape rule runs once per signature: the dims of a node are those of its signature. A shape error is thrown before
// anything is added. Nodes are in topological order by construction. The graph holds structure and addresses;
// planning (schedule/) and running (exec/) are not its business.
//
// Four sorts of node:
//   leaf      input data, a parameter, a lookup table, looked-up rows: has an address from the start
//   op        runs a kernel
//   alias     a contiguous part of another node's memory (a reshape, a slice): no kernel, no gradient memory of its own
//   output    a further output of an op node (a cell state); follows its op node directly
// Who may include: schedule/, exec/, bindings/. Includes: op/, base/, graph/params.h.
#pragma once
#include <memory>
#include <vector>

#include "base/arena.h"
#include "base/dim.h"
#include "base/fetch.h"
#include "graph/params.h"
#include "op/op.h"

namespace dnl {

using NodeId = u32;
constexpr NodeId kNoNode = 0xffffffffu;

enum NodeFlag : u16 {
  kLeaf = 1,
  kAlias = 2,
  kOutput = 4,
  kNeedsGrad = 8,       // some parameter can be reached backward from here
  kWeight = 16,         // made of parameters alone
  kPartial = 32,        // an alias that does not cover its root
  kInner = 64,          // made inside a cell, which alone reads it: no expression refers to it
  kOverwritten = 128,   // an inner node whose value is gone: an output of its cell lies there
  kFused = 256,         // runs inside the one node that reads it, and has no value of its own (rewrite/rules/fuse.cc)
  kGradApart = 512,     // a joined node whose gradient may not lie where its value lies (rewrite/rules/fuse.cc)
  kCounted = 1024,      // the expressions that refer to it are counted
  kMerged = 2048,       // an alias of a node that computes the same (rewrite/rules/merge.cc)
  kDead = 4096,         // does not run, for nobody can ask for it (rewrite/rules/dead.cc)
  kRowToCome = 8192,    // an input of a recorded cell in whose place calls have a row of a table (graph/body.h)
  kPartUnread = 16384,  // a joined node of which nobody reads some part any more (rewrite/rewriter.cc)
};

struct Node {
  u32 sig;
  u32 args;         // first operand in operands()
  u32 member;       // first member attribute word
  NodeId producer;  // the op node or leaf whose running gives this value
  NodeId root;      // the node that owns the memory (itself unless alias)
  u32 offset;       // alias: floats from the root's value; input, parameter: its number; fused: the node it went into
  u32 depth;        // op nodes on the longest path that ends here, of what was made: more than those of its arguments
  u32 dim;          // id of its dims
  u32 stamp;        // generation in which it was made
  u16 flags;
  u8 readers;    // how often it is an argument,
  u8 handles;    // and how many expressions refer to it (kCounted); kMany and more are not told apart
  float* value;  // null until it has an address
  static constexpr u8 kMany = 255;
  bool is(u16 f) const { return (flags & f) != 0; }
};

enum class Leaf : u8 { None, Input, Param, Table, Lookup };

struct alignas(64) Signature {  // a line of the cache
  OpId op;
  Leaf leaf;
  bool alias;
  u8 visible, total;  // outputs
  bool no_grad;
  bool has_seed;
  bool plain;       // an op with one output that is no alias, without checks of attributes and without a seed
  bool partial;     // reads some arguments in part only (ShapeOut::partial)
  bool any_shared;  // some argument is shared; without one the kernel goes member by member and nothing need be near
  u32 nargs;
  u32 items;       // of a bundle (rewrite/rules/bundle.cc) the members that it runs as, which take call_nargs arguments
                   // each; else 1
  u32 call_nargs;  // first come the arguments of item 0, then the stacked ones of the others
  u32 key;         // first word in keys_: header, one word per argument, key attributes
  u32 nkey;        // key attribute words
  u32 dim[kMaxOutputs];
  u16 flags, of_any,
      of_all;  // of a node: these, those that some argument has, those that all of them have (graph/append.h)
  u32 table;   // lookups: index of the table in this graph
  u32 family;  // the same for all signatures whose nodes may run together though lengths differ (OpDef::ragged)
};

static_assert(sizeof(Signature) == 64, "a signature is a line of the cache");

class Graph {
 public:
  // Of nodes that this backend runs: leaves have addresses in its memory.
  explicit Graph(Backend& backend);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // ---- building ----------------------------------------------------------------------------------------------
  NodeId add(OpId op, const NodeId* args, int nargs, const Word* key, int nkey, const Word* member, int nmember);
  // The same where the signature is known to be `sig`, one of this generation: nothing is looked for.
  NodeId add_known(u32 sig, const NodeId* args, const Word* member, int nmember);
  // The same for a signature that is no alias, and attributes that it has had before: arg(j) is argument j
  // (graph/append.h).
  template <class Arg>
  NodeId append(u32 sig, u32 nargs, Arg arg, const Word* member, u32 nmember);
  // As add(), for one argument and no attributes: the commonest call, kept short.
  NodeId add_unary(OpId op, NodeId a);
  // Room for an input of this shape; the caller fills input_data() before anything runs.
  NodeId add_input(const Dim& dim);
  // The same number everywhere.
  NodeId add_constant(const Dim& dim, float v);
  NodeId add_parameter(const std::shared_ptr<Parameter>& p);
  // The caller settles the rows when the whole table will be read (LookupTable::settle_all).
  NodeId add_table(const std::shared_ptr<LookupTable>& t, bool for_rows = false);  // as a whole, or for look-ups alone
  // The node that one of these has made last, if it is there and as it would be made now; kNoNode: there is none.
  NodeId find_parameter(const Parameter& p) const;
  NodeId find_table(const LookupTable& t, bool for_rows) const;
  // Rows `ids` of a table node; n > 1 or batched: the rows are batch elements.
  NodeId add_lookup(NodeId table, const u32* ids, u32 n, bool batched, bool update);
  // n look-ups of one row each; the first of the nodes, which lie one behind the other.
  NodeId add_rows(NodeId table, const u32* ids, u32 n, bool update);

  // Forget all nodes; every expression of before is stale. Memory is kept, that of who listens too, unless it is far
  // above recent use: then all of it is given back, and true is returned.
  bool renew();
  void checkpoint();
  // Nodes below are those of the last checkpoint: they must not change, since what is made now may go.
  NodeId marked() const { return marks_.empty() ? 0 : marks_[marks_.size() - 1].nodes; }
  // Forget all nodes since the last checkpoint (nothing when there is none).
  void revert();
  // The end of the graph as it is now, and what takes away the nodes behind it, while none of them has run.
  struct Mark {
    u32 nodes, operands, words, params, tables, sigs, known_leaves, staged, gathered;
    Arena::Point inputs, uploaded, copies;
  };
  Mark end() const;
  void return_to(const Mark& m) { truncate(m); }
  // Does an expression refer to a node from this one on? Those of weights do not count, which enter graphs by
  // themselves, nor those of aliases, which nobody counts.
  bool held_since(NodeId from) const;

  // ---- reading -----------------------------------------------------------------------------------------------
  // Asks for the nodes and what they are made of.
  void fetch() const { fetch_all(nodes_, operands_, words_, sigs_); }
  u32 size() const { return static_cast<u32>(nodes_.size()); }
  const Node& node(NodeId i) const { return nodes_[i]; }
  const Signature& signature(NodeId i) const { return sigs_[nodes_[i].sig]; }
  const Signature& sig(u32 s) const { return sigs_[s]; }
  u32 signatures() const { return static_cast<u32>(sigs_.size()); }
  const Dim& dim(NodeId i) const { return dims_[nodes_[i].dim]; }
  const Dim& dim_by_id(u32 d) const { return dims_[d]; }
  // Floats of an output of a signature.
  std::size_t out_size(u32 s, u32 o) const { return dims_[sigs_[s].dim[o]].size(); }
  const NodeId* operands(NodeId i) const { return operands_.data() + nodes_[i].args; }
  u32 nargs(NodeId i) const { return sigs_[nodes_[i].sig].nargs; }
  const Word* member(NodeId i) const { return words_.data() + nodes_[i].member; }
  u32 member_words(NodeId i) const { return op_def(signature(i).op).has_member_attrs ? count_member_words(i) : 0; }
  const Word* key(u32 s) const {
    return reinterpret_cast<const Word*>(keys_.data() + sigs_[s].key + 1 + sigs_[s].nargs);
  }
  bool arg_shared(u32 s, u32 j) const { return (keys_[sigs_[s].key + 1 + j] & 1u) != 0; }
  NodeId shared_arg(u32 s, u32 j) const { return keys_[sigs_[s].key + 1 + j] >> 1; }
  u32 stacked_dim(u32 s, u32 j) const { return keys_[sigs_[s].key + 1 + j] >> 1; }
  u32 arg_dim(u32 s, NodeId example, u32 j) const {
    const u32 w = keys_[sigs_[s].key + 1 + j];
    return (w & 1u) ? nodes_[operands(example)[j]].dim : w >> 1;
  }
  // Should the members' arguments lie one behind the other (Access)?
  bool arg_near(u32 s, u32 j) const {
    if (sigs_[s].items > 1) return false;
    const Access access = op_def(sigs_[s].op).arg_spec(static_cast<int>(j), key(s)).access;
    return access == Access::AlwaysNear || (access == Access::Near && sigs_[s].any_shared);
  }
  // Leaves that are the same if their signature and first member word are, in their order: look-ups of one row,
  // constants.
  const Vec<NodeId>& known_leaves() const { return known_leaves_; }
  Parameter* parameter(NodeId i) const { return params_[nodes_[i].offset].get(); }
  LookupTable* table(u32 t) const { return tables_[t].get(); }
  u32 tables() const { return static_cast<u32>(tables_.size()); }
  NodeId table_node(u32 t) const { return table_nodes_[t]; }
  // One table may have entered the graph several times: the first number that it has.
  u32 first_number(u32 t) const {
    u32 same = 0;
    while (tables_[same] != tables_[t]) ++same;
    return same;
  }
  u32 parameters() const { return static_cast<u32>(params_.size()); }
  // Asks for the record of a node that is read soon.
  void fetch(NodeId i) const { DNL_FETCH(nodes_.data() + i); }
  NodeId parameter_node(u32 p) const { return param_nodes_[p]; }
  // Row ids of a lookup node.
  const u32* lookup_ids(NodeId i) const { return reinterpret_cast<const u32*>(words_.data() + nodes_[i].member); }
  // A stamp that no other node of this process has at this id: what makes an expression of an old graph recognisable.
  u32 stamp(NodeId i) const { return nodes_[i].stamp; }
  bool valid(NodeId i, u32 stamp) const { return i < nodes_.size() && nodes_[i].stamp == stamp; }
  // Does it run, as a node of its own?
  bool is_op(NodeId i) const { return !nodes_[i].is(kLeaf | kAlias | kOutput | kFused | kDead); }

  // ---- who refers to a node (see Handle) -------------------------------------------------------------------------
  // False: it need not be let go.
  bool hold(NodeId i) {
    if (!nodes_[i].is(kCounted)) return false;
    count(nodes_[i].handles);
    return true;
  }
  void let_go(NodeId i, u32 stamp) {
    if (valid(i, stamp)) let_go(i);
  }
  void let_go(NodeId i) {
    if (nodes_[i].handles != Node::kMany) let_go_of_ += --nodes_[i].handles == 0;
  }
  // How often the last expression that referred to a node has gone.
  u64 let_go_of() const { return let_go_of_; }
  // As if an expression referred to it for good.
  void keep(NodeId i) { nodes_[i].handles = Node::kMany; }
  void unkeep(NodeId i) { nodes_[i].handles = 0; }
  u32 readers(NodeId i) const { return nodes_[i].readers; }
  // What an alias is an alias of.
  NodeId aliased(NodeId i) const { return nodes_[i].is(kMerged) ? nodes_[i].root : operands(i)[0]; }
  // What is read where node i is an argument: what it was merged into, if it was.
  NodeId source(NodeId i) const { return nodes_[i].is(kMerged) ? nodes_[i].root : i; }
  // The node that does the work of a fused node.
  NodeId fused_into(NodeId i) const {
    while (nodes_[i].is(kFused)) i = nodes_[i].offset;
    return i;
  }

  // ---- memory (written by the executor) ------------------------------------------------------------------------
  float* value(NodeId i) const { return nodes_[i].value; }
  // Where the host writes an input.
  float* input_data(NodeId i) const { return backend_.host_memory ? nodes_[i].value : staged_[nodes_[i].offset].host; }
  // While they lie in one piece, which begins here, inputs of graphs with the same nodes lie at the same addresses.
  // Else null.
  const void* inputs_at() const { return backend_.host_memory ? inputs_.mark().block : nullptr; }
  // Leaves from this node on get their numbers, before anything that reads them runs: inputs what the host has written,
  // look-ups of several rows these rows, weights those that are the newest.
  void fill_leaves(NodeId from);
  // An alias of `root`, or the root itself: address of its value once the root has one.
  void place(NodeId i, float* p) { nodes_[i].value = p; }
  // Where the newest numbers of parameter number p lie; while graphs keep weights, they stay there for this graph.
  void place_parameter(u32 p);
  // They need not, from parameter number `from` on: what reads them will run again.
  void let_go_numbers(std::size_t from = 0);
  // Has the parameter of node i got other numbers since this graph read it?
  bool is_behind(NodeId i) const {
    const Parameter::Readers* then = param_readers_[nodes_[i].offset];
    return then && then != parameter(i)->readers;
  }

  // Has any parameter, or any table since the graph first read its rows, or read them anew?
  bool is_behind() const;

  // Changes the row ids of a lookup, or a member attribute word; the caller marks what was computed as stale.
  void set_lookup_ids(NodeId i, const u32* ids, u32 n);
  void set_member_word(NodeId i, u32 at, Word w);
  // The same for who checks by itself (graph/feed.h): the words, and where the value of an alias begins in its
  // argument.
  Word* words_of(NodeId i) { return words_.data() + nodes_[i].member; }
  void move_alias(NodeId i, std::size_t to);
  // Further flags of node i. kInner: the caller promises that only the next node reads it. kMarks: those that whoever
  // made it, or a pass, gave to a node and that one like it has, too.
  static constexpr u16 kMarks = kInner | kOverwritten | kGradApart;
  void mark(NodeId i, u16 flags) { nodes_[i].flags |= flags; }
  // Somebody is about to read i, too.
  void unmark_inner(NodeId i) { nodes_[i].flags &= static_cast<u16>(~kInner); }
  // Is it a row of a table, perhaps of several?
  bool is_row(NodeId i) const { return signature(i).leaf == Leaf::Lookup || nodes_[i].is(kRowToCome); }

  // Before everything runs again: new seeds for random nodes, lookups read their rows anew.
  void refresh();
  u64 seed_state = 1;        // state of the generator that gives each random node its seed,
  void draw_seed(Word* to);  // the two words of the next one
  // What an op node does, for people: the name of the op; of a fused node the formula, shortened unless `whole`; of a
  // joined one "affine_transform x 4".
  std::string op_text(NodeId i, bool whole) const;
  std::string describe(NodeId i) const;  // "tanh {50}", for messages; "tanh {50} inside 7" of a fused node
  u32 generation() const { return generation_; }
  // What the executor listens to: nodes from this id on are gone or changed; there are none, and memory is given back.
  struct Listener {
    virtual void truncated(u32 n_nodes) = 0;
    virtual void release() = 0;

   protected:
    ~Listener() = default;
  };
  void set_listener(Listener* l) { listener_ = l; }

 private:
  // ---- what only passes do (rewrite/rewriter.h keeps uses, what needs a gradient, and depths right) --------------
  friend class Rewriter;
  // Node i becomes another op. Arguments that were merged are what they were merged into.
  void replace(NodeId i, OpId op, const NodeId* args, int nargs, const Word* key, int nkey, const Word* member,
               int nmember);
  // Node i becomes a bundle, whose arguments these are.
  void bundle(NodeId i, const NodeId* args, u32 nargs);
  // Node i, an op or an output, becomes an alias of the earlier node `first`.
  void merge(NodeId i, NodeId first) {
    Node& n = nodes_[i];
    set_readers(first, readers(first) + readers(i));
    set_readers(i, Node::kMany);
    n.flags |= kAlias | kMerged;
    n.producer = nodes_[first].producer;
    n.root = first;
    n.offset = 0;
  }
  // One of those that read node i does no more.
  void reads_no_more(NodeId i) {
    Node& n = nodes_[source(i)];
    if (n.readers && n.readers != Node::kMany) --n.readers;
  }
  void set_readers(NodeId i, u32 n) { nodes_[i].readers = static_cast<u8>(n < Node::kMany ? n : Node::kMany); }

  static void count(u8& n) { n = static_cast<u8>(n + (n != Node::kMany)); }
  void find_rows(NodeId i);
  void list_rows(NodeId i);
  void copy_rows_now(NodeId i);
  template <class Member>
  void read_newest(Member& member);
  NodeId add_input_leaf(const Dim& dim, u16 flags, float** host);
  void upload_inputs(NodeId from);
  void gather_rows(NodeId from);
  u32 count_member_words(NodeId i) const;
  void write(Node* n, u32 sig, u32 args, u32 member, NodeId producer, u32 depth, u32 dim, u32 flags);
  NodeId append_alias(u32 sig, const NodeId* args, const Word* member, int nmember, std::size_t alias_at);
  static constexpr u32 kMostNodes = 0x7fffffffu;
  [[noreturn]] static void too_many_nodes();
  std::size_t check_attributes(const OpDef& def, const Signature& sig, u32 s, const NodeId* args, const Word* member);
  friend struct GraphSize;
  friend class KnownGraph;
  friend class RepeatAdder;
  void enter(u32 s);
  void make_buckets(std::size_t n);
  u32 intern(const u32* key, u32 n, u64 hash, bool* fresh);
  u32 intern_dim(const Dim& d);
  NodeId add_leaf(Leaf kind, u32 k1, u32 k2, const Dim& d, u16 flags, float* value);
  NodeId append_leaf(u32 sig, u16 flags, float* value);
  NodeId add_row(u32 table, u32 row, u16 flags);
  void repeat_row(NodeId first, LookupTable& t, const u32* ids, u32 n);
  u32 find_or_make(const OpDef& def, OpId op, const NodeId* args, int nargs, const Word* key, int nkey);
  u32 find_long(const u32* k, u32 n, OpId op, const NodeId* args, int nargs, int nkey);
  u32 find_or_make(const u32* k, u32 n, OpId op, const NodeId* args, int nargs, int nkey);
  void make_signature(u32 s, OpId op, const NodeId* args, int nargs, int nkey);
  void find_family(u32 s, const NodeId* args);
  void take_arguments(NodeId i, const NodeId* args, u32 nargs);
  void truncate(const Mark& m);
  void forget_reads(NodeId from);
  void bump_generation();

  Vec<Node> nodes_;
  Vec<NodeId> operands_;
  Vec<Word> words_;

  Vec<Signature> sigs_;
  bool changes_ = false;  // some node has a seed, or rows that were copied when it was made: others when it runs again
  Vec<u32> keys_;
  Vec<u32> key_len_;
  struct Slot {
    u32 hash;
    u32 sig;
  };
  struct Recent {
    static constexpr u32 kWords = 6;
    u32 generation = 0, n = 0, sig = 0;
    u32 key[kWords];
  };
  static constexpr u32 kRecent = 128;
  Recent recent_[kRecent];
  // The same for keys of some length: where the last few were found.
  static constexpr u32 kRecentLong = 32, kLongWords = 32;
  u32 recent_long_[kRecentLong];
  // Signatures of the single rows that were looked up last, of a few tables.
  static constexpr u32 kRowTables = 4;
  struct RowSignature {
    u32 generation = 0, table = 0, sig = 0;
    u16 flags = 0;
  };
  RowSignature row_signatures_[kRowTables];
  Vec<Slot> buckets_;  // open addressing, sig + 1, 0 = empty
  Vec<Dim> dims_;
  Vec<u32> build_key_;  // scratch
  Vec<const Dim*> build_dims_;

  void keep_parameters(std::size_t n);  // the first n
  void empty_buckets();
  void note_use() { use_.note(nodes_.size() + operands_.size() + words_.size()); }

  std::vector<std::shared_ptr<Parameter>> params_;
  Vec<NodeId> param_nodes_;
  Vec<Parameter::Readers*> param_readers_;  // of the numbers that each was placed at; null: it has not been read
  Vec<NodeId> known_leaves_;
  std::vector<std::shared_ptr<LookupTable>> tables_;
  Vec<NodeId> table_nodes_;
  Vec<u64> table_changes_;  // of each, when it entered, or when its rows were last read anew
  Vec<Mark> marks_;
  Backend& backend_;
  Arena inputs_;  // the host's: what inputs are written to
  // The backend's: inputs, where its memory is not the host's, laid out as the host's are; rows that are gathered.
  Arena uploaded_, copies_;
  struct Staged {
    NodeId node;
    float *host, *at;
    std::size_t n;
  };
  Vec<Staged> staged_;                   // inputs that are uploaded, in order
  Vec<NodeId> gathered_;                 // look-ups of several rows, which are copied when the graph runs, in order
  Vec<float*> from_, to_;                // rows to be gathered
  RecentUse use_{std::size_t(1) << 16};  // nodes, operands and words: all arrays grow with these
  u32 generation_ = 0;
  u64 let_go_of_ = 0;
  Listener* listener_ = nullptr;
};

// What an expression holds of its node: while one does, the node keeps its value and its gradient.
class Handle {
 public:
  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (graph_) graph_->let_go(id_, stamp_);
  }
  // Once; the graph must outlive this.
  void take(Graph& g, NodeId id, u32 stamp) {
    if (!g.hold(id)) return;
    graph_ = &g;
    id_ = id;
    stamp_ = stamp;
  }

 private:
  Graph* graph_ = nullptr;
  NodeId id_ = 0;
  u32 stamp_ = 0;
};

}  // namespace dnl
