#include "exec/parts.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "exec/pool.h"

namespace dnl {
namespace {

// Rows of each of n operands from a member on, in memory of the part.
const Rows* all_from(Arena& arena, const Rows* rows, int n, idx first) {
  if (!rows) return nullptr;
  Rows* to = arena.array<Rows>(static_cast<std::size_t>(n) + 1);
  for (int i = 0; i < n; ++i) to[i] = rows[i].from(first);
  return to;
}

}  // namespace

// In how many parts? The measure of work is that of schedule/split.cc: floats touched.
int CallParts::worth(const Call& c, const ExecOptions& options, bool shared) {
  if (c.members < 2) return 1;
  std::size_t out = 0, weights = 0;
  for (int o = 0; o < c.n_outputs; ++o) out += c.out_size(o);
  for (int j = 0; j < c.nargs; ++j) weights += c.shared[j] ? c.arg_size(j) : 0;
  const std::size_t members = static_cast<std::size_t>(c.members);
  if (members * (out + weights / 4) < options.least_work) return 1;
  // Clearing and adding a matrix must be little beside the products that make it.
  if (shared && options.least_work && 4 * weights > members * out) return 1;
  return std::min(options.threads, c.members);
}

// The call of some of the members.
void CallParts::cut(const Call& c, int part, int count) {
  const int first = c.members * part / count;
  Part& p = *parts_[static_cast<std::size_t>(part)];
  p.arena.rewind();
  p.rows.rewind();
  p.call = c;
  p.call.members = c.members * (part + 1) / count - first;
  p.call.x = all_from(p.rows, c.x, c.nargs, first);
  p.call.y = all_from(p.rows, c.y, c.n_outputs, first);
  p.call.dy = all_from(p.rows, c.dy, c.n_outputs, first);
  p.call.dx = all_from(p.rows, c.dx, c.nargs, first);
  if (c.member) p.call.member = c.member + first;
  p.call.scratch = p.call.lasting = &p;
  p.call.memo = nullptr;  // of one thread
}

void CallParts::give_private(Part& p, const Call& c) {
  Rows* dx = const_cast<Rows*>(p.call.dx);  // all_from() made them
  for (int j = 0; j < c.nargs; ++j)
    if (c.shared[j] && dx[j].wanted()) dx[j].base = p.rows.floats(c.arg_size(j));
}

void CallParts::add_private(Backend& backend, const Call& c, int count) {
  for (int j = 0; j < c.nargs; ++j)
    for (int part = 1; part < count && c.shared[j] && c.dx[j].wanted(); ++part)
      backend.add_rows(1, c.arg_size(j), parts_[static_cast<std::size_t>(part)]->call.dx[j], c.dx[j]);
}

template <class F>
void CallParts::run(Backend& backend, const Call& c, int count, bool private_shared, F f) {
  while (static_cast<int>(parts_.size()) < count) parts_.push_back(std::make_unique<Part>());
  for (int k = 0; k < count; ++k) {
    cut(c, k, count);
    if (private_shared && k) give_private(*parts_[static_cast<std::size_t>(k)], c);
  }
  const std::thread::id caller = std::this_thread::get_id();
  run_lanes(count, count, [&](int k) {
    Part& p = *parts_[static_cast<std::size_t>(k)];
    const ProductCounts before = product_counts();
    for (int j = 0; j < c.nargs && private_shared && k; ++j)
      if (c.shared[j] && c.dx[j].wanted()) backend.fill(c.arg_size(j), 0.f, p.call.dx[j].base);
    f(p.call);
    if (std::this_thread::get_id() != caller) p.counts += product_counts() - before;  // who counts its own
  });
  if (private_shared) add_private(backend, c, count);
}

ProductCounts CallParts::take_counts() {
  ProductCounts sum;
  for (auto& p : parts_) sum += std::exchange(p->counts, ProductCounts());
  return sum;
}

bool CallParts::forward(Backend& backend, const Call& c, const ExecOptions& options) {
  const int count = worth(c, options, false);
  if (count < 2) return false;
  run(backend, c, count, false, [&](const Call& part) { backend.forward(part); });
  return true;
}

bool CallParts::backward(Backend& backend, const Call& c, const ExecOptions& options) {
  bool shared = false;
  for (int j = 0; j < c.nargs; ++j) shared |= c.shared[j] && c.dx[j].wanted();
  const int count = worth(c, options, shared);
  if (count < 2) return false;
  run(backend, c, count, shared, [&](const Call& part) { backend.backward(part); });
  return true;
}

bool CallParts::backward_shared(Backend& backend, const Call& c, const ExecOptions& options) {
  const int count = worth(c, options, true);
  if (count < 2) return false;
  run(backend, c, count, true, [&](const Call& part) {
    for (int j = 0; j < c.nargs; ++j)
      if (c.shared[j] && c.dx[j].wanted()) backend.backward_shared(part, j);
  });
  return true;
}

}  // namespace dnl
