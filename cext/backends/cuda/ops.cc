#include "backends/cuda/ops.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>

namespace dnl::cuda {
namespace {

struct Entry {
  const char* name;
  DeviceOp op;
};
Vec<Entry>& entries() {
  static Vec<Entry> all;
  return all;
}

}  // namespace

DeviceOpEntry::DeviceOpEntry(const char* name, const DeviceOp& op) { entries().push_back({name, op}); }

const DeviceOp* device_op(const OpDef& op) {
  static const std::unordered_map<const OpDef*, const DeviceOp*> by_op = [] {
    std::unordered_map<const OpDef*, const DeviceOp*> found;
    for (const Entry& e : entries()) found[&op_def(op_by_name(e.name))] = &e.op;
    return found;
  }();
  const auto at = by_op.find(&op);
  return at == by_op.end() ? nullptr : at->second;
}

bool is_on_host(const OpDef& op) {
  static const std::string wish = [] {
    const char* text = std::getenv("DYNET_LITE_CUDA_ON_HOST");
    return text && *text ? "," + std::string(text) + "," : std::string();
  }();
  if (!device_op(op) && !op.in_kernels) return true;
  return !wish.empty() && wish.find("," + std::string(op.name) + ",") != std::string::npos;
}

// ---- gradients -----------------------------------------------------------------------------------------------------

Gradients::Gradients(const Call& c) : c_(c) {
  for (int j = 0; j < c.nargs; ++j) {
    rows_.push_back(c.dx[j]);
    acc_.push_back(c.acc[j]);
    aside_.push_back(false);
  }
  const Vec<bool> meets = which_meet();
  // The first that meets nobody of its own may stay, unless another is cleared before it is added.
  bool stays = true;
  for (int j = 0; j < c.nargs; ++j) stays &= !meets[static_cast<std::size_t>(j)] || c.acc[j];
  for (int j = 0; j < c.nargs; ++j) {
    const std::size_t at = static_cast<std::size_t>(j);
    if (!meets[at]) continue;
    const idx n = static_cast<idx>(c.arg_size(j));
    const bool in_place = stays && rows_apart(count(j), n, c.dx[j]);
    stays = false;
    if (in_place) continue;
    rows_[at] = Rows{recorder().temporary(static_cast<std::size_t>(count(j) * n)), n, nullptr};
    acc_[at] = false;
    aside_[at] = true;
  }
}

// The arguments of whose rows one meets another, of the same argument or not.
Vec<bool> Gradients::which_meet() const {
  struct Of {
    Span span;
    int argument;
  };
  Vec<Of> all;
  Vec<bool> meets;
  for (int j = 0; j < c_.nargs; ++j) {
    meets.push_back(false);
    const Rows& r = c_.dx[j];
    if (!r.wanted()) continue;
    const u64 length = c_.arg_size(j) * sizeof(float);
    if (r.packed(static_cast<idx>(c_.arg_size(j)))) {
      all.push_back({{address(r.base), address(r.base) + static_cast<u64>(count(j)) * length}, j});
      continue;
    }
    for (idx m = 0; m < count(j); ++m) all.push_back({{address(r[m]), address(r[m]) + length}, j});
  }
  std::sort(all.begin(), all.end(), [](const Of& a, const Of& b) { return a.span.begin < b.span.begin; });
  for (std::size_t i = 1, furthest = 0; i < all.size(); ++i) {
    if (all[i].span.begin < all[furthest].span.end)
      meets[static_cast<std::size_t>(all[i].argument)] = meets[static_cast<std::size_t>(all[furthest].argument)] = true;
    if (all[i].span.end > all[furthest].span.end) furthest = i;
  }
  return meets;
}

device::Rows Gradients::write(int j) const { return cuda::write(rows(j), count(j), c_.arg_size(j)); }

void Gradients::clear(int j) {
  if (acc(j)) return;
  cuda::fill_rows(count(j), static_cast<idx>(c_.arg_size(j)), 0.0f, rows(j));
  acc_[static_cast<std::size_t>(j)] = true;
}

// Not before the record has run: a gradient may lie where what it reads does.
void Gradients::done() const {
  auto each_aside = [&](auto f) {
    for (int j = 0; j < c_.nargs; ++j)
      if (aside_[static_cast<std::size_t>(j)]) f(j, static_cast<idx>(c_.arg_size(j)));
  };
  each_aside([&](int j, idx n) {
    if (!c_.acc[j]) cuda::fill_rows(count(j), n, 0.0f, c_.dx[j]);
  });
  each_aside([&](int j, idx n) { table().add_rows(count(j), n, rows(j), c_.dx[j]); });
}

}  // namespace dnl::cuda
