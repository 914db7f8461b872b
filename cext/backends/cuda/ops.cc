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
  if (all_apart()) return;
  // The first that meets nobody of its own stays; the others are added after it.
  bool first = true;
  for (int j = 0; j < c.nargs; ++j) {
    if (!c.dx[j].wanted()) continue;
    const idx n = static_cast<idx>(c.arg_size(j));
    if (first && rows_apart(count(j), n, c.dx[j])) {
      first = false;
      continue;
    }
    first = false;
    const std::size_t at = static_cast<std::size_t>(j);
    if (!acc_[at]) cuda::fill_rows(count(j), n, 0.0f, c.dx[j]);
    rows_[at] = Rows{recorder().temporary(static_cast<std::size_t>(count(j) * n)), n, nullptr};
    acc_[at] = false;
    aside_[at] = true;
  }
}

bool Gradients::all_apart() const {
  Vec<Span> spans;
  for (int j = 0; j < c_.nargs; ++j) {
    const Rows& r = c_.dx[j];
    if (!r.wanted()) continue;
    const u64 length = c_.arg_size(j) * sizeof(float);
    if (r.packed(static_cast<idx>(c_.arg_size(j)))) {
      spans.push_back({address(r.base), address(r.base) + static_cast<u64>(count(j)) * length});
      continue;
    }
    for (idx m = 0; m < count(j); ++m) spans.push_back({address(r[m]), address(r[m]) + length});
  }
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < spans.size(); ++i)
    if (spans[i].begin < spans[i - 1].end) return false;
  return true;
}

device::Rows Gradients::write(int j) const { return cuda::write(rows(j), count(j), c_.arg_size(j)); }

void Gradients::clear(int j) {
  if (acc(j)) return;
  cuda::fill_rows(count(j), static_cast<idx>(c_.arg_size(j)), 0.0f, rows(j));
  acc_[static_cast<std::size_t>(j)] = true;
}

void Gradients::done() const {
  for (int j = 0; j < c_.nargs; ++j)
    if (aside_[static_cast<std::size_t>(j)])
      table().add_rows(count(j), static_cast<idx>(c_.arg_size(j)), rows(j), c_.dx[j]);
}

}  // namespace dnl::cuda
