#include "backends/cuda/on_host.h"

#include <algorithm>

#include "base/arena.h"

namespace dnl::cuda {
namespace {

class HostScratch final : public Scratch {
 public:
  float* alloc(std::size_t n) override { return arena_.floats(n); }
  void* list(std::size_t n) override { return arena_.alloc_bytes(n); }

 private:
  Arena arena_;
};

// The images of pieces of memory.
class Image {
 public:
  void add(const Rows& rows, std::size_t k, std::size_t n) {
    if (!rows.wanted() || n == 0) return;
    for (std::size_t m = 0; m < k; ++m) pieces_.push_back({address(rows[static_cast<std::ptrdiff_t>(m)]), 0, n});
  }
  // Pieces that touch become one.
  void settle() {
    std::sort(pieces_.begin(), pieces_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    std::size_t kept = 0, floats = 0;
    for (const device::Segment& p : pieces_) {
      if (kept > 0) {
        device::Segment& last = pieces_[kept - 1];
        const u64 end = last.at + last.n * sizeof(float);
        if (p.at <= end) {
          const u64 more = p.at + p.n * sizeof(float);
          if (more > end) last.n += (more - end) / sizeof(float);
          continue;
        }
      }
      pieces_[kept++] = p;
    }
    pieces_.resize(kept);
    for (device::Segment& p : pieces_) {
      p.offset = floats;
      floats += p.n;
    }
    numbers_.resize(floats);
  }
  void download(Recorder& r) {
    if (numbers_.empty()) return;
    float* packed = r.temporary(numbers_.size());
    copy(r, packed, false);
    r.download(numbers_.data(), address(packed), numbers_.size() * sizeof(float));
  }
  void upload(Recorder& r) {
    if (numbers_.empty()) return;
    const u64 staged = r.stage(numbers_.data(), numbers_.size() * sizeof(float));
    copy(r, floats_at(staged), true);
  }
  Rows rows(const Rows& r, std::size_t k, std::size_t n) {
    if (!r.wanted() || n == 0) return r;
    float** list = lists_.array<float*>(k + 1);
    for (std::size_t m = 0; m < k; ++m) list[m] = at(address(r[static_cast<std::ptrdiff_t>(m)]));
    if (r.regular()) return Rows{list[0], r.stride == 0 || k < 2 ? 0 : list[1] - list[0], same_distance(list, k)};
    return Rows{nullptr, 0, list};
  }

 private:
  // Rows at one distance there may have other distances here.
  static float* const* same_distance(float** list, std::size_t k) {
    for (std::size_t m = 2; m < k; ++m)
      if (list[m] - list[m - 1] != list[1] - list[0]) return list;
    return nullptr;
  }
  float* at(u64 address) {
    auto p = std::upper_bound(pieces_.begin(), pieces_.end(), address,
                              [](u64 a, const device::Segment& s) { return a < s.at; });
    --p;
    return numbers_.data() + p->offset + (address - p->at) / sizeof(float);
  }
  void copy(Recorder& r, float* packed, bool back) {
    device::CopySegments record{};
    record.segments = r.stage(pieces_.data(), pieces_.size() * sizeof(device::Segment));
    for (const device::Segment& p : pieces_) {
      const float* there = floats_at(p.at);
      back ? r.writes(there, static_cast<std::ptrdiff_t>(p.n)) : r.reads(there, static_cast<std::ptrdiff_t>(p.n));
    }
    const std::ptrdiff_t all = static_cast<std::ptrdiff_t>(numbers_.size());
    record.packed = back ? r.reads(packed, all) : r.writes(packed, all);
    record.k = static_cast<long long>(pieces_.size());
    record.back = back;
    r.add(Kernel::copy_segments, record, static_cast<std::ptrdiff_t>(pieces_.size()) * 128);
  }

  Vec<device::Segment> pieces_;
  Vec<float> numbers_;
  Arena lists_;
};

}  // namespace

void run_on_host(Recorder& recorder, const Call& call, Part part, int wrt) {
  const std::size_t k = static_cast<std::size_t>(call.members);
  Image image;
  // Arguments, outputs and their gradients; hidden gradients carry what backward leaves for backward_shared.
  Vec<Rows> x, y, dy, dx;
  auto each = [&](auto f) {
    for (int j = 0; j < call.nargs; ++j) f(call.x[j], call.shared[j] ? std::size_t(1) : k, call.arg_size(j), &x);
    for (int o = 0; o < call.n_outputs; ++o) f(call.y[o], k, call.out_size(o), &y);
    if (part == Part::Forward) return;
    for (int o = 0; o < call.n_outputs; ++o) f(call.dy[o], k, call.out_size(o), &dy);
    for (int j = 0; j < call.nargs; ++j) f(call.dx[j], call.shared[j] ? std::size_t(1) : k, call.arg_size(j), &dx);
  };
  each([&](const Rows& r, std::size_t rows, std::size_t n, Vec<Rows>*) { image.add(r, rows, n); });
  image.settle();
  image.download(recorder);
  each([&](const Rows& r, std::size_t rows, std::size_t n, Vec<Rows>* to) { to->push_back(image.rows(r, rows, n)); });
  HostScratch scratch;
  Call c = call;
  c.x = x.data();
  c.y = y.data();
  c.dy = dy.data();
  c.dx = dx.data();
  c.scratch = &scratch;
  c.transposes = nullptr;
  run_part(c, part, wrt);
  image.upload(recorder);
}

}  // namespace dnl::cuda
