#include "backends/cpu/intra_op.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "base/arena.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"

namespace dnl {
namespace {

// Rows of each of n operands from a member on, in memory of the part.
const Rows* all_from(Arena& arena, const Rows* rows, int n, std::ptrdiff_t first) {
  if (!rows) return nullptr;
  Rows* to = arena.array<Rows>(static_cast<std::size_t>(n) + 1);
  for (int i = 0; i < n; ++i) to[i] = rows[i].from(first);
  return to;
}

class CpuIntraOp final : public IntraOp {
 public:
  bool forward(const Call& c, const Team& team) override;
  bool backward(const Call& c, const Team& team, bool apart) override;
  bool backward_shared(const Call& c, const Team& team) override;
  ProductCounts take_counts() override;
  void release() override {
    parts_ = std::vector<std::unique_ptr<Part>>();
    release_all(bounds_, live_, item_rows_);
  }

 private:
  struct Part final : Scratch {
    Arena arena, rows;
    Call call;
    ProductCounts counts;
    float* alloc(std::size_t n) override { return arena.floats(n); }
    void* list(std::size_t n) override { return arena.alloc_bytes(n); }
  };

  template <class F>
  void run(const Call& c, const Team& team, bool private_shared, F f);
  // In how many parts would it be run? shared: with the gradients of shared arguments.
  static int worth(const Call& c, const Team& team, bool shared);
  bool by_item(const Call& c);
  void choose_bounds(const Call& c, int count, bool by_gradient);
  void cut(const Call& c, int part);
  void give_private(Part& part, const Call& c);
  void add_private(const Call& c);

  std::vector<std::unique_ptr<Part>> parts_;
  Vec<int> bounds_;  // of the parts of this call, one more than there are
  Vec<u32> live_;    // by member: gradients that are not zero
  Call items_{};     // a call of one member as one of its elements
  Arena item_rows_;  // its arrays
};

// In how many parts? Floats touched are the measure, as in schedule/split.cc, but without stacked arguments.
int CpuIntraOp::worth(const Call& c, const Team& team, bool shared) {
  std::size_t out = 0, weights = 0;
  for (int o = 0; o < c.n_outputs; ++o) out += c.out_size(o);
  for (int j = 0; j < c.nargs; ++j) weights += c.shared[j] ? c.arg_size(j) : 0;
  return team.parts(static_cast<u32>(c.members), out, weights, shared);
}

// Elements of a mini-batch by hand as members: items_. False: the op cannot, or some argument is one for all of them.
bool CpuIntraOp::by_item(const Call& c) {
  const u32 batch = c.out_dim[0].bd;
  if (!c.op->by_item || c.members != 1 || batch < 2) return false;
  for (int j = 0; j < c.nargs; ++j)
    if (!c.shared[j] && c.arg_dim[j]->bd != batch) return false;
  item_rows_.rewind();
  const std::size_t nargs = static_cast<std::size_t>(c.nargs), outputs = static_cast<std::size_t>(c.n_outputs);
  Dim* dims = item_rows_.array<Dim>(nargs + outputs);
  const Dim** arg_dim = item_rows_.array<const Dim*>(nargs);
  auto item = [](const Dim& d) {
    Dim one = d;
    one.bd = 1;
    return one;
  };
  for (std::size_t j = 0; j < nargs; ++j) {
    dims[j] = c.shared[j] ? *c.arg_dim[j] : item(*c.arg_dim[j]);
    arg_dim[j] = dims + j;
  }
  for (std::size_t o = 0; o < outputs; ++o) dims[nargs + o] = item(c.out_dim[o]);
  auto rows_of = [&](const Rows* rows, std::size_t n, const Dim* dim, const bool* shared) -> const Rows* {
    if (!rows) return nullptr;
    Rows* to = item_rows_.array<Rows>(n);
    for (std::size_t i = 0; i < n; ++i)
      to[i] = (shared && shared[i]) || !rows[i].wanted()
                  ? rows[i]
                  : Rows{rows[i][0], static_cast<std::ptrdiff_t>(dim[i].size()), nullptr};
    return to;
  };
  items_ = c;
  items_.members = static_cast<int>(batch);
  items_.of_signature = c.of_signature * items_.members;
  items_.arg_dim = arg_dim;
  items_.out_dim = dims + nargs;
  items_.x = rows_of(c.x, nargs, dims, c.shared);
  items_.dx = rows_of(c.dx, nargs, dims, c.shared);
  items_.y = rows_of(c.y, outputs, dims + nargs, nullptr);
  items_.dy = rows_of(c.dy, outputs, dims + nargs, nullptr);
  return true;
}

// The members of each part: as many of each, or as many gradients that are not zero.
void CpuIntraOp::choose_bounds(const Call& c, int count, bool by_gradient) {
  bounds_.clear();
  for (i64 part = 0; part <= count; ++part) bounds_.push_back(static_cast<int>(c.members * part / count));
  if (!by_gradient) return;
  live_.clear();
  u64 all = 0, before = 0;
  for (int m = 0; m < c.members; ++m) {
    const float* dy = c.dy[0][m];
    live_.push_back(static_cast<u32>(std::count_if(dy, dy + c.out(m).size(), [](float v) { return v != 0; })));
    all += live_[static_cast<std::size_t>(m)];
  }
  int part = 1;
  for (int m = 0; m < c.members && part < count; ++m) {
    before += live_[static_cast<std::size_t>(m)];
    while (part < count && before * static_cast<u64>(count) >= all * static_cast<u64>(part)) {
      // Every part has a member.
      bounds_[static_cast<std::size_t>(part)] = std::min(std::max(m + 1, part), c.members - count + part);
      ++part;
    }
  }
}

// The call of some of the members.
void CpuIntraOp::cut(const Call& c, int part) {
  const int first = bounds_[static_cast<std::size_t>(part)];
  Part& p = *parts_[static_cast<std::size_t>(part)];
  p.arena.rewind();
  p.rows.rewind();
  p.call = c;
  p.call.members = bounds_[static_cast<std::size_t>(part) + 1] - first;
  p.call.x = all_from(p.rows, c.x, c.nargs, first);
  p.call.y = all_from(p.rows, c.y, c.n_outputs, first);
  p.call.dy = all_from(p.rows, c.dy, c.n_outputs, first);
  p.call.dx = all_from(p.rows, c.dx, c.nargs, first);
  if (c.member) p.call.member = c.member + first;
  if (c.dims) p.call.dims = c.dims + first * (c.nargs + 1);
  p.call.scratch = &p;
}

void CpuIntraOp::give_private(Part& p, const Call& c) {
  Rows* dx = const_cast<Rows*>(p.call.dx);  // all_from() made them
  for (int j = 0; j < c.nargs; ++j)
    if (c.shared[j] && dx[j].wanted()) dx[j].base = p.rows.floats(c.arg_size(j));
}

void CpuIntraOp::add_private(const Call& c) {
  const int count = static_cast<int>(bounds_.size()) - 1;
  for (int j = 0; j < c.nargs; ++j)
    for (int part = 1; part < count && c.shared[j] && c.dx[j].wanted(); ++part)
      kernels().add_rows(1, c.arg_size(j), parts_[static_cast<std::size_t>(part)]->call.dx[j], c.dx[j]);
}

template <class F>
void CpuIntraOp::run(const Call& c, const Team& team, bool private_shared, F f) {
  const int count = static_cast<int>(bounds_.size()) - 1;
  while (static_cast<int>(parts_.size()) < count) parts_.push_back(std::make_unique<Part>());
  for (int k = 0; k < count; ++k) {
    cut(c, k);
    if (private_shared && k) give_private(*parts_[static_cast<std::size_t>(k)], c);
  }
  const std::thread::id caller = std::this_thread::get_id();
  team.run(count, count, [&](int k) {
    Part& p = *parts_[static_cast<std::size_t>(k)];
    const ProductCounts before = product_counts();
    for (int j = 0; j < c.nargs && private_shared && k; ++j)
      if (c.shared[j] && c.dx[j].wanted()) kernels().fill(static_cast<idx>(c.arg_size(j)), 0.f, p.call.dx[j].base);
    f(p.call);
    if (std::this_thread::get_id() != caller) p.counts += product_counts() - before;  // who counts its own
  });
  if (private_shared) add_private(c);
}

ProductCounts CpuIntraOp::take_counts() {
  ProductCounts sum;
  for (auto& p : parts_) sum += std::exchange(p->counts, ProductCounts());
  return sum;
}

bool CpuIntraOp::forward(const Call& c, const Team& team) {
  const Call& call = by_item(c) ? items_ : c;
  const int count = worth(call, team, false);
  if (count < 2) return false;
  choose_bounds(call, count, false);
  run(call, team, false, [&](const Call& part) { part.op->forward(part); });
  return true;
}

bool CpuIntraOp::backward(const Call& c, const Team& team, bool apart) {
  const bool items = by_item(c);
  if (!items && !apart) return false;
  const Call& call = items ? items_ : c;
  bool shared = false;
  for (int j = 0; j < c.nargs; ++j) shared |= c.shared[j] && c.dx[j].wanted();
  const int count = worth(call, team, shared);
  if (count < 2) return false;
  choose_bounds(call, count, c.op->shared == Shared::WithStacked);
  run(call, team, shared, [&](const Call& part) { part.op->backward(part); });
  return true;
}

bool CpuIntraOp::backward_shared(const Call& c, const Team& team) {
  const int count = worth(c, team, true);
  if (count < 2) return false;
  choose_bounds(c, count, false);
  run(c, team, true, [&](const Call& part) {
    for (int j = 0; j < c.nargs; ++j)
      if (c.shared[j] && c.dx[j].wanted()) part.op->backward_shared(part, j);
  });
  return true;
}

}  // namespace

std::unique_ptr<IntraOp> intra_op_of_cpu() { return std::make_unique<CpuIntraOp>(); }

}  // namespace dnl
