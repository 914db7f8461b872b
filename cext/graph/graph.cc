#include "graph/graph.h"

#include <algorithm>
#include <atomic>

#include "base/mix.h"
#include "graph/append.h"

namespace dnl {
namespace {

u64 hash_words(const u32* w, u32 n) {
  u64 h = n;
  for (u32 i = 0; i < n; ++i) h = mix(h, w[i]);
  return h ^ (h >> 32);
}

// Keys are short: a loop beats a call.
inline bool same_words(const u32* a, const u32* b, u32 n) {
  for (u32 i = 0; i < n; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

constexpr u32 kLeafHeader = 0xffff0000u;  // headers of leaf keys; no op has this id
constexpr u32 kBundleHeader = 0x8000u;    // added to headers of bundles
constexpr u32 kFamilyHeader = 0x4000u;    // and of families
static_assert(kMaxOps <= kFamilyHeader, "op ids leave room for them");

std::atomic<u32> g_generation{1};

u16 lookup_flags(const LookupTable& t, bool update) { return update && t.updated ? u16(kNeedsGrad) : u16(0); }

template <class T>
void make_room(std::vector<T>& v) {
  if (v.size() == v.capacity()) v.reserve(2 * v.size() + 8);
}

}  // namespace

Graph::Graph(Backend& backend) : backend_(backend), uploaded_(backend.memory()), copies_(backend.memory()) {
  for (u32& s : recent_long_) s = kNoNode;
  bump_generation();
}
Graph::~Graph() { keep_parameters(0); }

void Graph::keep_parameters(std::size_t n) {
  let_go_numbers(n);
  params_.resize(n);
  param_nodes_.resize(n);
  param_readers_.resize(n);
}

void Graph::bump_generation() { generation_ = g_generation.fetch_add(1, std::memory_order_relaxed); }

bool Graph::renew() {
  if (listener_) listener_->truncated(0);
  note_use();
  const bool back = use_.far_below();
  nodes_.clear();
  operands_.clear();
  words_.clear();
  empty_buckets();
  sigs_.clear();
  changes_ = false;
  keys_.clear();
  key_len_.clear();
  dims_.clear();
  keep_parameters(0);
  known_leaves_.clear();
  tables_.clear();
  table_nodes_.clear();
  table_changes_.clear();
  marks_.clear();
  staged_.clear();
  gathered_.clear();
  inputs_.reset();
  uploaded_.reset();
  copies_.reset();
  bump_generation();
  if (back) {
    use_.given_back();
    release_all(nodes_, operands_, words_, sigs_, keys_, key_len_, buckets_, dims_, build_key_, build_dims_,
                param_nodes_, param_readers_, table_nodes_, table_changes_, known_leaves_, marks_, inputs_, uploaded_,
                copies_, staged_, gathered_, from_, to_);
    if (listener_) listener_->release();
  }
  trim_heap();
  return back;
}

// Many times more of them than signatures would cost every renewal: they become fewer, step by step.
void Graph::empty_buckets() {
  if (sigs_.empty()) return;
  constexpr std::size_t kMany = 4096;
  const std::size_t n = buckets_.size(), fewer = n > kMany && n / 16 > sigs_.size() ? n / 2 : n;
  buckets_.resize(fewer);
  std::memset(static_cast<void*>(buckets_.data()), 0, fewer * sizeof(Slot));
}

void Graph::checkpoint() { marks_.push_back(end()); }

Graph::Mark Graph::end() const {
  return {size(),
          static_cast<u32>(operands_.size()),
          static_cast<u32>(words_.size()),
          static_cast<u32>(params_.size()),
          static_cast<u32>(tables_.size()),
          signatures(),
          static_cast<u32>(known_leaves_.size()),
          static_cast<u32>(staged_.size()),
          static_cast<u32>(gathered_.size()),
          inputs_.point(),
          uploaded_.point(),
          copies_.point()};
}

bool Graph::held_since(NodeId from) const {
  for (NodeId i = from; i < size(); ++i) {
    const Leaf leaf = signature(i).leaf;
    if (nodes_[i].handles && leaf != Leaf::Param && leaf != Leaf::Table) return true;
  }
  return false;
}

void Graph::revert() {
  if (marks_.empty()) return;
  truncate(marks_.back());
  marks_.pop_back();
}

// Signatures stay: they describe no node in particular, but those that share a node which is gone must not be found
// again, so every one interned since the mark is dropped from the buckets.
void Graph::truncate(const Mark& m) {
  if (listener_) listener_->truncated(m.nodes);
  note_use();
  forget_reads(m.nodes);
  nodes_.resize(m.nodes);
  operands_.resize(m.operands);
  words_.resize(m.words);
  keep_parameters(m.params);
  tables_.resize(m.tables);
  table_nodes_.resize(m.tables);
  table_changes_.resize(m.tables);
  known_leaves_.resize(m.known_leaves);
  staged_.resize(m.staged);
  gathered_.resize(m.gathered);
  inputs_.return_to(m.inputs);
  uploaded_.return_to(m.uploaded);
  copies_.return_to(m.copies);
  if (m.sigs < sigs_.size()) {
    keys_.resize(sigs_[m.sigs].key);
    sigs_.resize(m.sigs);
    key_len_.resize(m.sigs);
    make_buckets(buckets_.size());
  }
  bump_generation();
}

// What nodes from `from` on read is read less often. Fused, dead and merged nodes have ceased to count.
void Graph::forget_reads(NodeId from) {
  for (NodeId i = from; i < size() && from; ++i) {
    if (nodes_[i].is(kLeaf | kOutput | kFused | kDead | kMerged)) continue;
    for (u32 j = 0; j < nargs(i); ++j)
      if (operands(i)[j] < from) reads_no_more(operands(i)[j]);
  }
}

// n buckets, of all signatures.
void Graph::make_buckets(std::size_t n) {
  buckets_.resize(n);
  std::memset(static_cast<void*>(buckets_.data()), 0, n * sizeof(Slot));
  for (u32 s = 0; s < sigs_.size(); ++s) enter(s);
}

// Signature s is found from here on. There is room; it may have been there.
void Graph::enter(u32 s) {
  const u64 h = hash_words(keys_.data() + sigs_[s].key, key_len_[s]);
  std::size_t b = h & (buckets_.size() - 1);
  while (buckets_[b].sig && buckets_[b].sig != s + 1) b = (b + 1) & (buckets_.size() - 1);
  buckets_[b] = {static_cast<u32>(h >> 7), s + 1};
}

// Finds the signature with this key, or makes room for a new one (fresh: the caller fills it in).
u32 Graph::intern(const u32* key, u32 n, u64 h, bool* fresh) {
  if ((sigs_.size() + 1) * 2 > buckets_.size()) { make_buckets(buckets_.empty() ? 256 : buckets_.size() * 2); }
  const u32 tag = static_cast<u32>(h >> 7);
  std::size_t b = h & (buckets_.size() - 1);
  while (buckets_[b].sig) {
    if (buckets_[b].hash == tag) {
      const u32 s = buckets_[b].sig - 1;
      if (key_len_[s] == n && same_words(keys_.data() + sigs_[s].key, key, n)) {
        *fresh = false;
        return s;
      }
    }
    b = (b + 1) & (buckets_.size() - 1);
  }
  *fresh = true;
  const u32 s = static_cast<u32>(sigs_.size());
  Signature sig{};
  sig.items = 1;
  sig.family = s;
  sig.key = static_cast<u32>(keys_.size());
  keys_.append(key, n);
  key_len_.resize(s);  // one more where there was no memory for the signature
  key_len_.push_back(n);
  sigs_.push_back(sig);
  buckets_[b] = {tag, s + 1};
  return s;
}

u32 Graph::intern_dim(const Dim& d) {
  for (u32 i = static_cast<u32>(dims_.size()); i-- > 0;)
    if (dims_[i] == d) return i;
  dims_.push_back(d);
  return static_cast<u32>(dims_.size() - 1);
}

void Graph::too_many_nodes() { fail(ErrorKind::Memory, "[graph] more than 2^31 nodes in one graph; call renew_cg()"); }

// ---- leaves ----------------------------------------------------------------------------------------------------
//
// Room for all that belongs to a node comes first: without memory there is none of it.

NodeId Graph::add_leaf(Leaf kind, u32 k1, u32 k2, const Dim& d, u16 flags, float* value) {
  const u32 dim = intern_dim(d);
  const u32 key[4] = {kLeafHeader | static_cast<u32>(kind), dim, k1, k2};
  bool fresh;
  const u32 s = intern(key, 4, hash_words(key, 4), &fresh);
  if (fresh) {
    Signature& g = sigs_[s];
    g.op = 0;
    g.leaf = kind;
    g.visible = g.total = 1;
    g.dim[0] = dim;
    g.table = k1;
  }
  return append_leaf(s, flags, value);
}

inline NodeId Graph::append_leaf(u32 s, u16 flags, float* value) {
  const NodeId id = size();
  if (id == kMostNodes) too_many_nodes();
  Node* n = nodes_.extend(1);
  write(n, s, static_cast<u32>(operands_.size()), static_cast<u32>(words_.size()), id, 0, sigs_[s].dim[0],
        flags | kLeaf);
  n->value = value;
  return id;
}

NodeId Graph::add_input_leaf(const Dim& d, u16 flags, float** host) {
  const Arena::Point before = inputs_.point();
  float* to = *host = inputs_.floats(d.size());
  if (backend_.host_memory) try {
      return add_leaf(Leaf::Input, 0, 0, d, flags, to);
    } catch (...) {
      inputs_.return_to(before);  // see inputs_at()
      throw;
    }
  float* at = uploaded_.floats(d.size());
  staged_.make_room(1);
  const NodeId id = add_leaf(Leaf::Input, 0, 0, d, flags, at);
  nodes_[id].offset = static_cast<u32>(staged_.size());
  staged_.push_back({id, to, at, d.size()});
  return id;
}

NodeId Graph::add_input(const Dim& d) {
  float* host;
  return add_input_leaf(d, 0, &host);
}

NodeId Graph::add_constant(const Dim& d, float v) {
  float* to;
  words_.make_room(1);
  known_leaves_.make_room(1);
  const NodeId id = add_input_leaf(d, kCounted, &to);
  std::fill(to, to + d.size(), v);
  Word w;
  w.f = v;
  words_.push_back(w);
  known_leaves_.push_back(id);
  return id;
}

NodeId Graph::add_parameter(const std::shared_ptr<Parameter>& p) {
  const u16 flags = static_cast<u16>(kWeight | (p->updated ? kNeedsGrad : 0));
  make_room(params_);
  param_nodes_.make_room(1);
  param_readers_.make_room(1);
  const NodeId id = add_leaf(Leaf::Param, 0, 0, p->dim, flags, p->value.at(backend_));
  nodes_[id].offset = static_cast<u32>(params_.size());
  params_.push_back(p);
  param_nodes_.push_back(id);
  param_readers_.push_back(nullptr);
  return id;
}

NodeId Graph::add_table(const std::shared_ptr<LookupTable>& t, bool for_rows) {
  Dim d = t->row_dim;
  if (d.nd < kMaxDims) d.push(t->rows);
  const u16 flags = static_cast<u16>(kWeight | (t->updated ? kNeedsGrad : 0));
  make_room(tables_);
  table_nodes_.make_room(1);
  table_changes_.make_room(1);
  const NodeId id = add_leaf(Leaf::Table, static_cast<u32>(tables_.size()), 0, d, flags, t->value.at(backend_));
  nodes_[id].offset = for_rows;
  tables_.push_back(t);
  table_nodes_.push_back(id);
  table_changes_.push_back(t->changes);
  return id;
}

NodeId Graph::add_lookup(NodeId table_node, const u32* ids, u32 n, bool batched, bool update) {
  const u32 index = signature(table_node).table;
  LookupTable& t = *tables_[index];
  for (u32 i = 0; i < n; ++i) t.find_row(ids[i]);
  if (n == 0) fail_value("[lookup_batch] needs at least one row id");
  const u16 flags = lookup_flags(t, update);
  if (n == 1 && !batched && !keep_weights_flag()) return add_row(index, ids[0], flags);
  Dim d = t.row_dim;
  d.bd = n;
  words_.make_room(n);
  gathered_.make_room(1);
  const NodeId id = add_leaf(Leaf::Lookup, index, flags, d, flags, copies_.floats(d.size()));
  std::memcpy(words_.extend(n), ids, n * sizeof(u32));
  if (keep_weights_flag()) {  // as they are now
    copy_rows_now(id);
    changes_ = true;
  } else {
    gathered_.push_back(id);
  }
  return id;
}

NodeId Graph::add_rows(NodeId table, const u32* ids, u32 n, bool update) {
  const NodeId first = size();
  if (keep_weights_flag()) {
    for (u32 k = 0; k < n; ++k) add_lookup(table, ids + k, 1, false, update);
    return first;
  }
  const u32 index = signature(table).table;
  LookupTable& t = *tables_[index];
  for (u32 k = 0; k < n; ++k) t.find_row(ids[k]);
  if (n == 0) return first;
  if (n > kMostNodes - first) too_many_nodes();
  words_.make_room(n);
  known_leaves_.make_room(n);
  nodes_.make_room(n);
  repeat_row(add_row(index, ids[0], lookup_flags(t, update)), t, ids + 1, n - 1);
  return first;
}

// One row, read where it lies.
inline NodeId Graph::add_row(u32 table, u32 row, u16 flags) {
  LookupTable& t = *tables_[table];
  words_.make_room(1);
  known_leaves_.make_room(1);
  float* const value = t.row(backend_, row);
  RowSignature& last = row_signatures_[table % kRowTables];
  NodeId id;
  if (last.generation == generation_ && last.table == table && last.flags == flags) {
    id = append_leaf(last.sig, static_cast<u16>(flags | kCounted), value);
  } else {
    id = add_leaf(Leaf::Lookup, table, flags, t.row_dim, static_cast<u16>(flags | kCounted), value);
    last = {generation_, table, nodes_[id].sig, flags};
  }
  known_leaves_.push_back(id);
  t.read_in_place = true;
  words_.extend(1)->u = row;
  return id;
}

// ---- op nodes --------------------------------------------------------------------------------------------------

inline u32 Graph::find_or_make(const OpDef& def, OpId op, const NodeId* args, int nargs, const Word* key, int nkey) {
  u32 local[24];
  const u32 n = static_cast<u32>(1 + nargs + nkey);
  u32* k = local;
  if (n > 24) {
    build_key_.resize(n);
    k = build_key_.data();
  }
  k[0] = static_cast<u32>(op) | static_cast<u32>(nargs) << 16;
  const ArgSpec* specs = def.args.data();
  const int n_specs = static_cast<int>(def.args.size());
  for (int j = 0, at_spec = 0; j < nargs; ++j) {
    if (def.two_lists) at_spec = j >= key[0].i;
    const ArgSpec& spec = specs[at_spec];
    if (++at_spec == n_specs) at_spec = def.fixed_args;  // those of a list come round again
    const NodeId a = args[j];
    const bool share = spec.batch == Batch::Share || (spec.batch == Batch::Weight && nodes_[a].is(kWeight));
    k[1 + j] = share ? a << 1 | 1u : nodes_[a].dim << 1;
  }
  for (int i = 0; i < nkey; ++i) k[1 + nargs + i] = key[i].u;
  if (n > Recent::kWords) return find_long(k, n, op, args, nargs, nkey);
  u32 at = k[0];
  for (u32 i = 1; i < n; ++i) at = at * 31 + k[i];
  // Short keys that were seen lately are found without hashing.
  Recent& recent = recent_[(at ^ at >> 8) & (kRecent - 1)];
  if (recent.generation == generation_ && recent.n == n && same_words(recent.key, k, n)) return recent.sig;
  const u32 s = find_or_make(k, n, op, args, nargs, nkey);
  recent.generation = generation_;
  recent.n = n;
  recent.sig = s;
  for (u32 i = 0; i < n; ++i) recent.key[i] = k[i];
  return s;
}

u32 Graph::find_long(const u32* k, u32 n, OpId op, const NodeId* args, int nargs, int nkey) {
  if (n > kLongWords) return find_or_make(k, n, op, args, nargs, nkey);
  u32& recent = recent_long_[(k[0] + 7 * k[n / 2] + 31 * k[n - 1] + n) % kRecentLong];
  if (recent < sigs_.size() && key_len_[recent] == n && same_words(keys_.data() + sigs_[recent].key, k, n))
    return recent;
  return recent = find_or_make(k, n, op, args, nargs, nkey);
}

u32 Graph::find_or_make(const u32* k, u32 n, OpId op, const NodeId* args, int nargs, int nkey) {
  const u64 h = hash_words(k, n);
  bool fresh;
  const u32 s = intern(k, n, h, &fresh);
  if (fresh) {
    try {
      make_signature(s, op, args, nargs, nkey);
    } catch (...) {
      // Forget the half-made signature: it is the last one.
      std::size_t b = h & (buckets_.size() - 1);
      while (buckets_[b].sig != s + 1) b = (b + 1) & (buckets_.size() - 1);
      buckets_[b] = {0, 0};
      keys_.resize(sigs_[s].key);
      sigs_.pop_back();
      key_len_.pop_back();
      throw;
    }
    if (op_def(op).ragged && !sigs_[s].alias) find_family(s, args);
  }
  return s;
}

void Graph::make_signature(u32 s, OpId op, const NodeId* args, int nargs, int nkey) {
  const OpDef& def = op_def(op);
  build_dims_.resize(nargs);
  for (int j = 0; j < nargs; ++j) build_dims_[j] = &dims_[nodes_[args[j]].dim];
  Signature& g = sigs_[s];
  g.op = op;
  g.leaf = Leaf::None;
  g.nargs = g.call_nargs = static_cast<u32>(nargs);
  g.nkey = static_cast<u32>(nkey);
  g.has_seed = false;
  g.any_shared = false;
  for (int j = 0; j < nargs; ++j) {
    if (!arg_shared(s, static_cast<u32>(j))) continue;
    g.any_shared = true;
    if (!nodes_[args[j]].is(kWeight)) keep(args[j]);  // the signature names it
  }
  for (const AttrSpec& a : def.attrs) g.has_seed |= a.kind == AttrKind::Seed;
  changes_ |= g.has_seed;
  const ShapeIn in{def, nargs, build_dims_.data(), key(s), nkey};
  ShapeOut out = def.shape(in);
  for (int o = 0; o < out.total; ++o)
    if (out.dim[o].size() > (std::size_t(1) << 31)) in.bad("the result " + out.dim[o].text() + " is too large");
  g.alias = out.alias;
  g.partial = out.partial;
  g.visible = out.visible;
  g.total = out.total;
  for (int o = 0; o < out.total; ++o) g.dim[o] = intern_dim(out.dim[o]);
  g.flags = g.alias ? 0 : kCounted;
  g.no_grad = def.no_grad;
  g.of_any = g.no_grad ? 0 : kNeedsGrad;
  g.of_all = nargs && !g.has_seed ? kWeight : 0;
  g.plain = !g.alias && g.visible == 1 && !g.has_seed && !def.check;
}

// The family is a signature of its own that no node has: its key is that of `s` without the lengths that may differ.
void Graph::find_family(u32 s, const NodeId* args) {
  constexpr u32 kMostArgs = 8, kMostWords = 24;
  const Signature sig = sigs_[s];
  const u32 n = 1 + sig.nargs + sig.nkey;
  if (sig.nargs > kMostArgs || n > kMostWords) return;
  Dim dims[kMostArgs];
  const Dim* each[kMostArgs];
  bool shared[kMostArgs];
  for (u32 j = 0; j < sig.nargs; ++j) {
    dims[j] = dims_[nodes_[args[j]].dim];
    each[j] = &dims_[nodes_[args[j]].dim];
    shared[j] = arg_shared(s, j);
  }
  const OpDef& def = op_def(sig.op);
  if (!def.ragged(ShapeIn{def, static_cast<int>(sig.nargs), each, key(s), static_cast<int>(sig.nkey)}, shared, dims))
    return;
  DNL_INTERNAL(sig.visible == 1 && !sig.partial && def.over == Over::Nothing && def.keep == Keep::Nothing,
               "an op whose members differ in lengths has one value and takes no part in tricks with memory");
  u32 k[kMostWords];
  std::memcpy(k, keys_.data() + sig.key, n * sizeof(u32));
  k[0] |= kFamilyHeader;
  for (u32 j = 0; j < sig.nargs; ++j)
    if (!shared[j]) k[1 + j] = intern_dim(dims[j]) << 1;
  bool fresh;
  const u32 family = intern(k, n, hash_words(k, n), &fresh);
  sigs_[s].family = family;
}

NodeId Graph::add(OpId op, const NodeId* args, int nargs, const Word* key, int nkey, const Word* member, int nmember) {
  return add_known(find_or_make(op_def(op), op, args, nargs, key, nkey), args, member, nmember);
}

NodeId Graph::add_known(u32 s, const NodeId* args, const Word* member, int nmember) {
  const Signature& sig = sigs_[s];
  if (!sig.plain) {  // may throw: nothing has been counted yet
    const std::size_t alias_at = check_attributes(op_def(sig.op), sig, s, args, member);
    if (sig.alias) return append_alias(s, args, member, nmember, alias_at);
  }
  return append(s, sig.nargs, [args](u32 j) { return args[j]; }, member, static_cast<u32>(nmember));
}

NodeId Graph::append_alias(u32 s, const NodeId* args, const Word* member, int nmember, std::size_t alias_at) {
  const NodeId id = append(s, sigs_[s].nargs, [args](u32 j) { return args[j]; }, member, static_cast<u32>(nmember));
  Node& n = nodes_[id];
  const Node& a = nodes_[args[0]];
  --n.depth;
  n.flags |= kAlias;
  n.producer = a.producer;
  n.root = a.root;
  keep(n.producer);  // this is a part of its memory
  n.offset = static_cast<u32>(alias_at) + (a.is(kAlias) ? a.offset : 0);
  if (dims_[sigs_[s].dim[0]].size() != dim(n.root).size()) n.flags |= kPartial;
  if (float* base = nodes_[n.root].value) n.value = base + n.offset;
  return id;
}

NodeId Graph::add_unary(OpId op, NodeId a) {
  const OpDef& def = op_def(op);
  const u32 head = static_cast<u32>(op) | 1u << 16, arg = nodes_[a].dim << 1;
  const u32 at = head * 31 + arg;
  const Recent& recent = recent_[(at ^ at >> 8) & (kRecent - 1)];
  const bool found = recent.generation == generation_ && recent.n == 2 && recent.key[0] == head && recent.key[1] == arg;
  if (!found || def.args[0].batch != Batch::Stack || !sigs_[recent.sig].plain)
    return add(op, &a, 1, nullptr, 0, nullptr, 0);
  return append(recent.sig, 1, [a](u32) { return a; }, nullptr, 0);
}

void Graph::replace(NodeId i, OpId op, const NodeId* args, int nargs, const Word* key, int nkey, const Word* member,
                    int nmember) {
  const u32 s = find_or_make(op_def(op), op, args, nargs, key, nkey);
  DNL_INTERNAL(!sigs_[s].alias && sigs_[s].visible == 1, "replace: not an op of one value");
  Node& n = nodes_[i];
  n.sig = s;
  n.dim = sigs_[s].dim[0];
  take_arguments(i, args, static_cast<u32>(nargs));
  if (!nmember) return;
  n.member = static_cast<u32>(words_.size());
  words_.append(member, static_cast<std::size_t>(nmember));
}

void Graph::take_arguments(NodeId i, const NodeId* args, u32 nargs) {
  nodes_[i].args = static_cast<u32>(operands_.size());
  NodeId* to = operands_.extend(nargs);
  for (u32 j = 0; j < nargs; ++j) to[j] = source(args[j]);
}

void Graph::bundle(NodeId i, const NodeId* args, u32 nargs) {
  const Signature whole = signature(i);
  build_key_.resize(2 + nargs + whole.nkey);
  u32* k = build_key_.data();
  k[0] = static_cast<u32>(whole.op) | kBundleHeader | nargs << 16;
  for (u32 j = 0; j < nargs; ++j) {
    const bool shared = j < whole.call_nargs && arg_shared(nodes_[i].sig, j);
    k[1 + j] = shared ? args[j] << 1 | 1u : nodes_[args[j]].dim << 1;
  }
  std::memcpy(k + 1 + nargs, key(nodes_[i].sig), whole.nkey * sizeof(u32));
  k[1 + nargs + whole.nkey] = dim(i).bd;  // two lists of three have as many arguments as three lists of two
  bool fresh;
  const u32 n = static_cast<u32>(build_key_.size()), s = intern(k, n, hash_words(k, n), &fresh);
  if (fresh) {
    const u32 at = sigs_[s].key;
    sigs_[s] = whole;
    sigs_[s].key = at;
    sigs_[s].family = s;
    sigs_[s].nargs = nargs;
    sigs_[s].items = dim(i).bd;
  }
  nodes_[i].sig = s;
  take_arguments(i, args, nargs);
}

// Throws when member attributes do not go with the shapes. For an alias: where it begins in argument 0.
std::size_t Graph::check_attributes(const OpDef& def, const Signature& sig, u32 s, const NodeId* args,
                                    const Word* member) {
  if (!def.check && !sig.alias) return 0;
  build_dims_.resize(sig.nargs);
  for (u32 j = 0; j < sig.nargs; ++j) build_dims_[j] = &dims_[nodes_[args[j]].dim];
  const ShapeIn in{def, static_cast<int>(sig.nargs), build_dims_.data(), key(s), static_cast<int>(sig.nkey)};
  if (def.check) def.check(in, member);
  return sig.alias && def.alias_offset ? def.alias_offset(in, member) : 0;
}

}  // namespace dnl
