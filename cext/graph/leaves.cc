// Where leaves get their numbers from, when the graph runs: one upload of all inputs, one copy of all gathered rows.
// Which leaf a weight is, and look-ups of many rows.
#include <algorithm>

#include "graph/graph.h"

namespace dnl {

// n more look-ups of a row like node `first`, the last one. There is room for them.
void Graph::repeat_row(NodeId first, LookupTable& t, const u32* ids, u32 n) {
  const Node like = nodes_[first];
  Node* const nodes = nodes_.extend(n);
  NodeId* const leaves = known_leaves_.extend(n);
  for (u32 k = 0; k < n; ++k) {
    Node& m = nodes[k];
    DNL_FETCH_TO_WRITE(&m + 20);  // pages end the processor's own foresight
    m = like;
    m.member += k + 1;
    m.producer = m.root = leaves[k] = first + k + 1;
    m.value = t.row(backend_, ids[k]);
  }
  if (n) std::memcpy(words_.extend(n), ids, n * sizeof(u32));
}

// One row is read where it lies in the table, unless graphs keep weights; several are copied one behind the other.
void Graph::find_rows(NodeId i) {
  LookupTable& t = *tables_[signature(i).table];
  float*& value = nodes_[i].value;
  float* const first = t.value.at(backend_);
  if (dim(i).bd == 1 && value >= first && value < first + t.size())
    value = first + *lookup_ids(i) * t.row_size;
  else if (!std::binary_search(gathered_.begin(), gathered_.end(), i))
    copy_rows_now(i);
}

void Graph::copy_rows_now(NodeId i) {
  from_.clear();
  to_.clear();
  list_rows(i);
  LookupTable& t = *tables_[signature(i).table];
  backend_.copy_rows(from_.size(), t.row_size, Rows{nullptr, 0, from_.data()}, Rows{nullptr, 0, to_.data()});
}

// Rows of a look-up, with their decay, and where they go.
void Graph::list_rows(NodeId i) {
  LookupTable& t = *tables_[signature(i).table];
  const u32* ids = lookup_ids(i);
  const u32 n = dim(i).bd;
  t.settle(backend_, ids, n);
  float* rows = t.value.read(backend_);
  float* to = nodes_[i].value;
  for (u32 k = 0; k < n; ++k, to += t.row_size) {
    from_.push_back(rows + ids[k] * t.row_size);
    to_.push_back(to);
  }
}

void Graph::fill_leaves(NodeId from) {
  for (auto& p : params_) read_newest(*p);
  for (auto& t : tables_) read_newest(*t);
  upload_inputs(from);
  gather_rows(from);
}

// The weights that nodes read where they lie are the newest.
template <class Member>
void Graph::read_newest(Member& member) {
  if (backend_.host_memory) {
    member.value.read(backend_);
    return;
  }
  const GradientLock lock(member.in_use);  // graphs of other threads may want them, too
  member.value.read(backend_);
}

// In as few pieces as they lie in: one, unless a step is larger than those before it.
void Graph::upload_inputs(NodeId from) {
  std::size_t k = staged_.size();
  while (k && staged_[k - 1].node >= from) --k;
  while (k < staged_.size()) {
    const Staged& first = staged_[k];
    const Staged* last = &first;
    while (++k < staged_.size() && staged_[k].at - first.at == staged_[k].host - first.host &&
           staged_[k].host > last->host)
      last = &staged_[k];
    backend_.upload(static_cast<std::size_t>(last->host - first.host) + last->n, first.host, first.at);
  }
}

// One call for all rows of a size that follow one another.
void Graph::gather_rows(NodeId from) {
  const NodeId* at = std::lower_bound(gathered_.begin(), gathered_.end(), from);
  while (at < gathered_.end()) {
    const std::size_t size = tables_[signature(*at).table]->row_size;
    from_.clear();
    to_.clear();
    for (; at < gathered_.end() && tables_[signature(*at).table]->row_size == size; ++at) list_rows(*at);
    backend_.copy_rows(from_.size(), size, Rows{nullptr, 0, from_.data()}, Rows{nullptr, 0, to_.data()});
  }
}

void Graph::place_parameter(u32 p) {
  Parameter& of = *params_[p];
  if (Parameter::Readers* now = of.readers; now != param_readers_[p]) {
    ++*now;
    if (param_readers_[p]) --*param_readers_[p];
    param_readers_[p] = now;
  }
  place(param_nodes_[p], of.value.at(backend_));
}

void Graph::let_go_numbers(std::size_t from) {
  for (std::size_t p = from; p < param_readers_.size(); ++p) {
    if (param_readers_[p]) --*param_readers_[p];
    param_readers_[p] = nullptr;
  }
}

bool Graph::is_behind() const {
  for (const NodeId i : param_nodes_)
    if (is_behind(i)) return true;
  for (std::size_t t = 0; t < tables_.size(); ++t)
    if (tables_[t]->changes != table_changes_[t]) return true;
  return false;
}

NodeId Graph::find_parameter(const Parameter& p) const {
  for (std::size_t k = params_.size(); k-- > 0;)
    if (params_[k].get() == &p && node(param_nodes_[k]).is(kNeedsGrad) == p.updated) return param_nodes_[k];
  return kNoNode;
}

NodeId Graph::find_table(const LookupTable& t, bool for_rows) const {
  for (std::size_t k = tables_.size(); k-- > 0;) {
    const Node& n = node(table_nodes_[k]);
    if (tables_[k].get() == &t && n.is(kNeedsGrad) == t.updated && (n.offset != 0) == for_rows) return table_nodes_[k];
  }
  return kNoNode;
}

}  // namespace dnl
