// Gradients of leaves: weights, rows of tables, whole tables. Who may include: nobody.
//
// Parameters and tables accumulate over all backward passes until an update. Expressions tell the gradient of the last
// pass alone. So what an expression may be asked for has memory of its own in the pass and is added to the accumulator
// at its end; but for weights whose accumulator is empty when the pass begins, as in most training loops: there the two
// are one, until somebody changes the accumulator (Parameter::grad_serial). Not where graphs keep weights.
#include <algorithm>

#include "exec/executor.h"

namespace dnl {

// Called where backward() is, before anything can let go of the expressions, whenever the pass runs.
void Executor::note_held() {
  held_.clear();
  for (NodeId i : g_.known_leaves())
    if (g_.node(i).handles && is_row(i)) held_.push_back(i);
  held_noted_ = true;
}

bool Executor::is_row(NodeId i) const {
  return g_.signature(i).leaf == Leaf::Lookup && g_.dim(i).bd == 1 && g_.node(i).is(kNeedsGrad);
}

// Memory of its own for the gradient of a leaf, which is added to the accumulator when the pass ends.
void Executor::place_apart(NodeId i) {
  pass_->planner.at()[i] = grads_.floats(g_.dim(i).size());
  facts().written[i] = kWritten;
  pass_->apart.push_back(i);
}

// What lies side by side, as they do most often, is cleared in one piece.
void Executor::clear_apart() {
  constexpr std::size_t kLine = 16;  // floats of a line, at which memory of an arena begins
  const Vec<float*>& at = pass_->planner.at();
  auto size = [&](std::size_t k) { return (g_.dim(pass_->apart[k]).size() + kLine - 1) / kLine * kLine; };
  for (std::size_t k = 0, first; k < pass_->apart.size();) {
    std::size_t n = 0;
    for (first = k; k < pass_->apart.size() && at[pass_->apart[k]] == at[pass_->apart[first]] + n; ++k) n += size(k);
    backend_->fill(n, 0.f, at[pass_->apart[first]]);
  }
}

void Executor::place_leaf_gradients() {
  Vec<float*>& at = pass_->planner.at();
  const bool noted = held_noted_;
  auto is_held = [&](NodeId i) {
    if (!g_.node(i).is(kCounted)) return true;  // nobody knows
    return noted ? std::binary_search(held_.begin(), held_.end(), i) : g_.node(i).handles != 0;
  };
  pass_->direct.clear();
  pass_->apart.clear();
  pass_->slots.clear();
  auto row_apart = [&](NodeId i) {
    if (!at[i]) place_apart(i);
  };
  for (NodeId i : pass_->reached_aliases) {  // which may be asked for, too
    const NodeId root = g_.node(i).root;
    if (is_row(root) && facts().reached[root]) row_apart(root);  // not past an alias that stops gradients
  }
  for (NodeId i : facts().leaves) {
    if (!is_row(i) || at[i]) continue;
    if (is_held(i)) {
      row_apart(i);
      continue;
    }
    g_.table(g_.signature(i).table)->slot(*g_.lookup_ids(i));
    pass_->slots.push_back(i);
  }
  for (NodeId i : pass_->slots) {  // now that their arrays do not grow any more
    LookupTable& t = *g_.table(g_.signature(i).table);
    at[i] = t.gradients(*backend_) + t.slot(*g_.lookup_ids(i)) * t.row_size;
    facts().written[i] = kWritten;
  }
  for (NodeId i : facts().leaves) {
    if (at[i]) continue;
    if (g_.signature(i).leaf == Leaf::Param && g_.node(i).is(kNeedsGrad))
      place_weight_gradient(i);
    else
      at[i] = grads_.floats(g_.dim(i).size());
  }
  clear_apart();
}

// Whoever watches for complete gradients looks at the accumulators while the pass runs.
void Executor::place_weight_gradient(NodeId i) {
  Parameter& p = *g_.parameter(i);
  const bool alone = !p.touched;
  if (!completion_.watch && (!alone || keep_weights_flag())) return place_apart(i);  // DyNet programs may ask any time
  p.touched = true;
  pass_->planner.at()[i] = p.grad.write(*backend_);
  facts().written[i] = kWritten;
  p.grad_changed();
  pass_->direct.push_back({i, alone ? p.grad_serial : 0});  // 0: it holds what passes have added up
}

// Large matrices that one node reads, and whose accumulators were empty: if a single vector has met them, their
// gradients are left as outer products (base/outer_later.h). By one thread; not where somebody looks while the pass
// runs.
void Executor::list_outers() {
  outers_.clear();
  if (backend_ != &host_backend() || options.threads != 1 || completion_.watch || keep_weights_flag()) return;
  for (const BackPass::Direct& d : pass_->direct) {
    Parameter& p = *g_.parameter(d.node);
    if (!d.serial || p.size() < options.least_outer || facts().reached[d.node] & kSeveral) continue;
    auto of_it = [&](NodeId alias) { return g_.node(alias).root == d.node; };
    if (std::any_of(pass_->reached_aliases.begin(), pass_->reached_aliases.end(), of_it)) continue;
    outers_.push_back({p.grad.at(*backend_), &p.grad.outer_place(), p.size()});
  }
}

// Gradients that have memory of their own go to the accumulators; those of several rows, and of whole tables, to the
// slots of their rows.
void Executor::collect_gradients() {
  Vec<float*>& at = pass_->planner.at();
  to_slots_.clear();
  for (NodeId i : pass_->apart) {
    if (is_row(i)) {
      to_slots_.push_back(i);
      continue;
    }
    Parameter& p = *g_.parameter(i);
    p.touched = true;
    p.grad_changed();
    backend_->add_rows(1, p.size(), Rows{at[i], 0, nullptr}, Rows{p.grad.write(*backend_), 0, nullptr});
  }
  for (NodeId i : facts().leaves) {
    if (!at[i] || !facts().written[i] || !g_.node(i).is(kNeedsGrad)) continue;
    const Leaf leaf = g_.signature(i).leaf;
    if (leaf == Leaf::Table || (leaf == Leaf::Lookup && g_.dim(i).bd > 1)) to_slots_.push_back(i);
  }
  add_to_slots();
  for (NodeId i : pass_->slots) at[i] = nullptr;  // their arrays may have grown
}

// f(row of the node's gradient, row of the table) for each row of a look-up, or of a whole table.
template <class F>
void Executor::each_row(NodeId i, F f) const {
  const bool whole = g_.signature(i).leaf == Leaf::Table;
  const u32 n = whole ? g_.table(g_.signature(i).table)->rows : g_.dim(i).bd;
  for (u32 k = 0; k < n; ++k) f(k, whole ? k : g_.lookup_ids(i)[k]);
}

// One call for each table.
void Executor::add_to_slots() {
  for (NodeId i : to_slots_) {
    LookupTable& t = *g_.table(g_.signature(i).table);
    each_row(i, [&](u32, u32 row) { t.slot(row); });
  }
  for (u32 index = 0; index < g_.tables() && !to_slots_.empty(); ++index) {
    if (g_.first_number(index) < index) continue;
    LookupTable& t = *g_.table(index);
    float* gradients = t.gradients(*backend_);
    slot_from_.clear();
    slot_to_.clear();
    for (NodeId i : to_slots_) {
      if (g_.table(g_.signature(i).table) != &t) continue;
      each_row(i, [&](u32 k, u32 row) {
        slot_from_.push_back(pass_->planner.at()[i] + k * t.row_size);
        slot_to_.push_back(gradients + t.slot(row) * t.row_size);
      });
    }
    const Rows from{nullptr, 0, slot_from_.data()}, to{nullptr, 0, slot_to_.data()};
    if (!slot_from_.empty()) backend_->add_rows(slot_from_.size(), t.row_size, from, to);
  }
}

// As in DyNet, whose nodes up to the loss all run backward.
void Executor::touch_looked_up(NodeId loss) {
  for (NodeId i = 0; i < loss; ++i) {
    if (g_.signature(i).leaf != Leaf::Lookup || !g_.node(i).is(kNeedsGrad)) continue;
    LookupTable& t = *g_.table(g_.signature(i).table);
    for (u32 k = 0; k < g_.dim(i).bd; ++k) t.slot(g_.lookup_ids(i)[k]);
  }
}

GradientRead Executor::read_gradient(NodeId i, float* to) {
  if (i >= graded_) return GradientRead::None;
  const std::size_t n = g_.dim(i).size();
  const NodeId root = g_.node(i).root;
  const float* at = i < pass_->planner.at().size() ? pass_->planner.at()[i] : nullptr;
  if (!at && i == root && is_row(i) && facts().reached[i]) return GradientRead::Summed;
  for (const BackPass::Direct& d : pass_->direct) {
    if (d.node != root || !at) continue;
    Parameter& p = *g_.parameter(root);
    const GradientLock lock(p.in_use);
    if (p.grad_serial != d.serial) return GradientRead::Gone;
    p.grad.read(*backend_);  // where nobody has formed it
    backend_->download(n, at, to);
    return GradientRead::Given;
  }
  if (at && facts().written[root])
    backend_->download(n, at, to);
  else
    std::memset(to, 0, n * sizeof(float));
  return GradientRead::Given;
}

}  // namespace dnl
