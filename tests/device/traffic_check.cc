// Traffic against a model that has levels for each float: random spans as records touch them, from single numbers to
// whole blocks. Compiled and run by test_traffic.py; ends with 0 and prints how many questions it asked.
#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

#include "backends/cuda/traffic.h"

using namespace dnl;
using cuda::Span, cuda::Traffic;

namespace {

struct Model {
  struct Levels {
    u32 after_writing = 0, after_reading = 0;
  };
  std::map<u64, std::vector<Levels>> blocks;  // by where they begin

  template <class F>
  void each(const Span& span, F f) {
    auto block = std::prev(blocks.upper_bound(span.begin));
    for (u64 at = span.begin; at < span.end; at += 4) f(block->second[(at - block->first) / 4]);
  }
  u32 earliest(const Span& span, bool written) {
    u32 found = 0;
    each(span, [&](const Levels& b) { found = std::max({found, b.after_writing, written ? b.after_reading : 0}); });
    return found;
  }
  void note(const Span& span, bool written, u32 level) {
    each(span, [&](Levels& b) {
      if (written)
        b = {level + 1, 0};
      else
        b.after_reading = std::max(b.after_reading, level + 1);
    });
  }
};

constexpr u64 kSize = 2'500'000;  // bytes of a block: one of the largest nodes at least, and parts of some

struct Check {
  std::mt19937 rng;
  Traffic traffic;
  Model model;
  std::vector<u64> begins;
  long asked = 0, wrong = 0;

  explicit Check(unsigned seed) : rng(seed) {
    for (u64 i = 0; i < 4; ++i) begins.push_back((u64(7) << 40) + i * 3 * kSize + 256 * pick(9));
    start();
  }
  u64 pick(u64 below) { return std::uniform_int_distribution<u64>(0, below - 1)(rng); }
  void start() {
    for (const u64 begin : begins) model.blocks[begin].assign(kSize / 4, {});
  }
  // A few numbers, a row, some pages, or most of a block; many of them where others lie.
  Span span() {
    const u64 lengths[] = {4 * (1 + pick(3)), 4 * (1 + pick(300)), 1024 * (1 + pick(40)), 4 + pick(kSize - 4) / 4 * 4};
    const u64 length = lengths[std::min(pick(40) / 13, u64(3))], places = kSize - length + 1;
    u64 at = pick(places) / 4 * 4;
    if (pick(4)) at -= at % std::min<u64>(length, 4096);
    const u64 begin = begins[pick(begins.size())] + at;
    return {begin, begin + length};
  }
  // A record: behind what it touches, as early as may be or later.
  void record(u32 level, bool exact) {
    std::vector<std::pair<Span, bool>> touched;
    u32 first = 0, wanted = 0;
    for (u64 n = 1 + pick(12); n > 0; --n) {
      touched.push_back({span(), pick(3) == 0});
      first = traffic.earliest(touched.back().first, touched.back().second, first);
      wanted = std::max(wanted, model.earliest(touched.back().first, touched.back().second));
      ++asked;
    }
    wrong += first != wanted;
    if (exact) level = first + static_cast<u32>(pick(3));
    for (const auto& t : touched) {
      traffic.note(t.first, t.second, level);
      model.note(t.first, t.second, level);
    }
  }
};

}  // namespace

int main() {
  long asked = 0, wrong = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    Check check(seed);
    for (int round = 0; round < 3; ++round) {  // clear() leaves nothing
      for (int i = 0; i < 250; ++i) check.record(static_cast<u32>(i), seed % 2 == 0);
      check.traffic.clear();
      check.start();
    }
    asked += check.asked;
    wrong += check.wrong;
  }
  std::printf("%ld questions, %ld wrong answers\n", asked, wrong);
  return wrong != 0;
}
