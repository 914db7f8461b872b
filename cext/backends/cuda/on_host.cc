#include "backends/cuda/on_host.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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
  // read: what is there is looked at. The rest is NaN until it is written.
  void add(const Rows& rows, std::size_t k, std::size_t n, bool read) {
    if (!rows.wanted() || n == 0) return;
    for (std::size_t m = 0; m < k; ++m) {
      pieces_.push_back({address(rows[static_cast<std::ptrdiff_t>(m)]), 0, n});
      if (read) read_.push_back(pieces_.back());
    }
  }
  void settle() {
    numbers_.resize(join(pieces_));
    std::fill(numbers_.begin(), numbers_.end(), std::nanf(""));
  }
  void download(Recorder& r) {
    const std::size_t n = join(read_);
    if (n == 0) return;
    float* packed = r.temporary(n);
    copy(r, read_, n, packed, false);
    Vec<float> got;
    got.resize(n);
    r.download(got.data(), address(packed), n * sizeof(float));
    for (const device::Segment& p : read_) std::memcpy(at(p.at), got.data() + p.offset, p.n * sizeof(float));
  }
  void upload(Recorder& r) {
    if (numbers_.empty()) return;
    r.make_room(numbers_.size() * sizeof(float) + pieces_.size() * sizeof(device::Segment) + 32);
    const u64 staged = r.stage(numbers_.data(), numbers_.size() * sizeof(float));
    copy(r, pieces_, numbers_.size(), floats_at(staged), true);
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
  // Pieces that touch become one. How many numbers are there?
  static std::size_t join(Vec<device::Segment>& pieces) {
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    std::size_t kept = 0, floats = 0;
    for (const device::Segment& p : pieces) {
      if (kept > 0) {
        device::Segment& last = pieces[kept - 1];
        const u64 end = last.at + last.n * sizeof(float);
        if (p.at <= end) {
          const u64 more = p.at + p.n * sizeof(float);
          if (more > end) last.n += (more - end) / sizeof(float);
          continue;
        }
      }
      pieces[kept++] = p;
    }
    pieces.resize(kept);
    for (device::Segment& p : pieces) {
      p.offset = floats;
      floats += p.n;
    }
    return floats;
  }
  float* at(u64 address) {
    auto p = std::upper_bound(pieces_.begin(), pieces_.end(), address,
                              [](u64 a, const device::Segment& s) { return a < s.at; });
    --p;
    return numbers_.data() + p->offset + (address - p->at) / sizeof(float);
  }
  static void copy(Recorder& r, const Vec<device::Segment>& pieces, std::size_t n, float* packed, bool back) {
    device::CopySegments record{};
    record.segments = r.stage(pieces.data(), pieces.size() * sizeof(device::Segment));
    for (const device::Segment& p : pieces) {
      const float* there = floats_at(p.at);
      back ? r.writes(there, static_cast<std::ptrdiff_t>(p.n)) : r.reads(there, static_cast<std::ptrdiff_t>(p.n));
    }
    const std::ptrdiff_t all = static_cast<std::ptrdiff_t>(n);
    record.packed = back ? r.reads(packed, all) : r.writes(packed, all);
    record.k = static_cast<long long>(pieces.size());
    record.back = back;
    r.add(Kernel::copy_segments, record, static_cast<std::ptrdiff_t>(pieces.size()) * 128);
  }

  Vec<device::Segment> pieces_, read_;
  Vec<float> numbers_;
  Arena lists_;
};

}  // namespace

void run_on_host(Recorder& recorder, const Call& call, Part part, int wrt) {
  const std::size_t k = static_cast<std::size_t>(call.members);
  Image image;
  // Arguments, outputs and their gradients; hidden gradients carry what backward leaves for backward_shared. What
  // nobody has written yet is not read.
  Vec<Rows> x, y, dy, dx;
  auto each = [&](auto f) {
    for (int j = 0; j < call.nargs; ++j) f(call.x[j], call.shared[j] ? 1 : k, call.arg_size(j), true, &x);
    for (int o = 0; o < call.n_outputs; ++o)
      f(call.y[o], k, call.out_size(o), part != Part::Forward || call.restore, &y);
    if (part == Part::Forward) return;
    for (int o = 0; o < call.n_outputs; ++o)
      f(call.dy[o], k, call.out_size(o), part == Part::BackwardShared || o < call.visible, &dy);
    for (int j = 0; j < call.nargs; ++j) {
      const bool in_part = call.partial && call.arg_size(j) > call.out_size();
      f(call.dx[j], call.shared[j] ? 1 : k, call.arg_size(j), part == Part::BackwardShared || call.acc[j] || in_part,
        &dx);
    }
  };
  each([&](const Rows& r, std::size_t rows, std::size_t n, bool read, Vec<Rows>*) { image.add(r, rows, n, read); });
  image.settle();
  image.download(recorder);
  each([&](const Rows& r, std::size_t rows, std::size_t n, bool, Vec<Rows>* to) {
    to->push_back(image.rows(r, rows, n));
  });
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
