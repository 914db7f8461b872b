// Gradients of leaves: weights, rows of tables, whole tables. Who may include: nobody.
//
// Parameters and tables accumulate over all backward passes until an update. Expressions tell the gradient of the last
// pass alone. So what an expression may be asked for has memory of its own in the pass and is added to the accumulator
// at its end; but for weights whose accumulator is empty when the pass begins, as in most training loops: there the two
// are one, until somebody changes the accumulator (Parameter::grad_serial). Not where graphs keep weights.
#include <algorithm>
#include <utility>

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

// Does the node's gradient go to the slot of one row of a table?
bool Executor::is_slot(NodeId i) const {
  if (!is_row(i)) return false;
  Store& grad = g_.table(g_.signature(i).table)->grad;
  const float *at = runner(0).gradients.at[i], *first = grad.at(*backend_);
  return at >= first && at < first + grad.size();
}

float* Executor::zero_gradient(NodeId i) {
  float* p = grads_.floats(g_.dim(i).size());
  backend_->fill(g_.dim(i).size(), 0.f, p);
  state_[i] = Gradients::kAlways;
  return p;
}

void Executor::place_leaf_gradients() {
  Vec<float*>& at = runner(0).gradients.at;
  const bool noted = std::exchange(held_noted_, false);
  auto is_held = [&](NodeId i) {
    if (!g_.node(i).is(kCounted)) return true;  // nobody knows
    return noted ? std::binary_search(held_.begin(), held_.end(), i) : g_.node(i).handles != 0;
  };
  direct_.clear();
  apart_.clear();
  slots_.clear();
  auto row_apart = [&](NodeId i) {
    if (at[i]) return;
    at[i] = zero_gradient(i);
    apart_.push_back(i);
  };
  for (NodeId i : reached_aliases_)  // which may be asked for, too
    if (is_row(g_.node(i).root)) row_apart(g_.node(i).root);
  for (NodeId i : reached_leaves_) {
    if (!is_row(i) || at[i]) continue;
    if (is_held(i)) {
      row_apart(i);
      continue;
    }
    g_.table(g_.signature(i).table)->slot(*g_.lookup_ids(i));
    slots_.push_back(i);
  }
  for (NodeId i : slots_) {  // now that their arrays do not grow any more
    LookupTable& t = *g_.table(g_.signature(i).table);
    at[i] = t.gradients(*backend_) + t.slot(*g_.lookup_ids(i)) * t.row_size;
    state_[i] = Gradients::kAlways;
  }
  for (NodeId i : reached_leaves_) {
    if (at[i]) continue;
    if (g_.signature(i).leaf == Leaf::Param && g_.node(i).is(kNeedsGrad))
      place_weight_gradient(i);
    else
      at[i] = grads_.floats(g_.dim(i).size());
  }
}

// Whoever watches for complete gradients looks at the accumulators while the pass runs.
void Executor::place_weight_gradient(NodeId i) {
  Parameter& p = *g_.parameter(i);
  float*& at = runner(0).gradients.at[i];
  const bool alone = !p.touched;
  if (!completion_.watch && (!alone || keep_weights_flag())) {  // DyNet programs may ask at any time
    at = zero_gradient(i);
    apart_.push_back(i);
    return;
  }
  p.touched = true;
  at = p.grad.write(*backend_);
  state_[i] = Gradients::kAlways;
  p.grad_changed();
  direct_.push_back({i, alone ? p.grad_serial : 0});  // 0: it holds what passes have added up
}

// Gradients that have memory of their own go to the accumulators; those of several rows, and of whole tables, to the
// slots of their rows.
void Executor::collect_gradients() {
  Vec<float*>& at = runner(0).gradients.at;
  for (NodeId i : apart_) {
    if (is_row(i)) {
      add_to_slots(i);
      continue;
    }
    Parameter& p = *g_.parameter(i);
    p.touched = true;
    p.grad_changed();
    backend_->add_rows(1, p.size(), Rows{at[i], 0, nullptr}, Rows{p.grad.write(*backend_), 0, nullptr});
  }
  for (NodeId i : reached_leaves_) {
    if (!at[i] || !state_[i] || !g_.node(i).is(kNeedsGrad)) continue;
    const Leaf leaf = g_.signature(i).leaf;
    if (leaf == Leaf::Table || (leaf == Leaf::Lookup && g_.dim(i).bd > 1)) add_to_slots(i);
  }
  for (NodeId i : slots_) at[i] = nullptr;  // their arrays may have grown
}

void Executor::add_to_slots(NodeId i) {
  LookupTable& t = *g_.table(g_.signature(i).table);
  const bool whole = g_.signature(i).leaf == Leaf::Table;
  const u32 n = whole ? t.rows : g_.dim(i).bd;
  for (u32 k = 0; k < n; ++k) t.slot(whole ? k : g_.lookup_ids(i)[k]);
  slot_list_.clear();
  float* gradients = t.gradients(*backend_);  // which do not grow any more
  for (u32 k = 0; k < n; ++k) slot_list_.push_back(gradients + t.slot(whole ? k : g_.lookup_ids(i)[k]) * t.row_size);
  const Rows from{runner(0).gradients.at[i], static_cast<std::ptrdiff_t>(t.row_size), nullptr};
  backend_->add_rows(n, t.row_size, from, Rows{nullptr, 0, slot_list_.data()});
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
  const float* at = runner(0).gradients[i];
  if (!at && i == root && is_row(i) && reached_[i]) return GradientRead::Summed;
  for (const Direct& d : direct_) {
    if (d.node != root || !at) continue;
    Parameter& p = *g_.parameter(root);
    const GradientLock lock(p.in_use);
    if (p.grad_serial != d.serial) return GradientRead::Gone;
    backend_->download(n, at, to);
    return GradientRead::Given;
  }
  if (at && state_[root])
    backend_->download(n, at, to);
  else
    std::memset(to, 0, n * sizeof(float));
  return GradientRead::Given;
}

}  // namespace dnl
