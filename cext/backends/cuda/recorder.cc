#include "backends/cuda/recorder.h"

#include <algorithm>
#include <cstring>

namespace dnl::cuda {
namespace {

constexpr std::size_t kFirstStage = std::size_t(1) << 20, kFirstTemporary = std::size_t(1) << 22;
constexpr u32 kNone = 0xffffffffu, kMostRecords = 65535, kMostBlocks = 1024;
constexpr std::size_t kLookBack = 12;  // waves

std::size_t aligned(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }
u64 address(const float* p) { return static_cast<u64>(reinterpret_cast<std::uintptr_t>(p)); }

}  // namespace

Recorder::Recorder(Device& device) : device_(device) {}

Recorder::~Recorder() = default;  // the card's memory goes with the process

// ---- what a record touches ---------------------------------------------------------------------------------------

u64 Recorder::touch(const float* p, std::ptrdiff_t n, bool written) {
  if (!p) return 0;
  const u64 at = address(p);
  touched_.push_back({{at, at + static_cast<u64>(n) * sizeof(float)}, written});
  return at;
}

device::Rows Recorder::touch(const Rows& rows, std::ptrdiff_t k, std::ptrdiff_t n, bool written) {
  if (!rows.wanted()) return {};
  const u64 length = static_cast<u64>(n) * sizeof(float);
  if (!rows.ptr) {
    const u64 first = address(rows.base), last = address(rows.base + (k > 0 ? k - 1 : 0) * rows.stride);
    touched_.push_back({{std::min(first, last), std::max(first, last) + length}, written});
    return {first, rows.stride, 0};
  }
  static_assert(sizeof(float*) == sizeof(u64), "addresses have 64 bits");
  Span span;
  for (std::ptrdiff_t m = 0; m < k; ++m) span.join({address(rows.ptr[m]), address(rows.ptr[m]) + length});
  touched_.push_back({span, written});
  return {0, 0, stage(rows.ptr, static_cast<std::size_t>(k) * sizeof(u64))};
}

// ---- staging -------------------------------------------------------------------------------------------------------

void Recorder::begin_stage(std::size_t bytes) {
  Stage& s = stages_[stage_];
  if (s.used) device_.wait_for(s.passed);
  s.used = false;
  if (s.size >= bytes) return;
  if (s.host) {
    device_.free(s.device);
    device_.free_host(s.host);
  }
  s.size = std::max(aligned(bytes, kFirstStage), 2 * s.size);
  s.host = static_cast<char*>(device_.alloc_host(s.size));
  s.device = device_.alloc(s.size);
  if (!s.passed) s.passed = device_.make_mark();
}

// The next buffer's turn comes when the card has read this one.
void Recorder::send(std::size_t bytes) {
  Stage& s = stages_[stage_];
  device_.upload(s.device, s.host, bytes);
  device_.mark(s.passed);
  s.used = true;
  stage_ = (stage_ + 1) % kStages;
  staged_ = 0;
}

u64 Recorder::stage(const void* p, std::size_t bytes) {
  const std::size_t room = aligned(bytes, 16);
  if (staged_ == 0) begin_stage(room);
  if (staged_ + records_.size() + room > stages_[stage_].size) {
    flush();
    begin_stage(16 * room);  // a record has so many lists at most: they stay until it has run
  }
  Stage& s = stages_[stage_];
  std::memcpy(s.host + staged_, p, bytes);
  const u64 at = s.device + staged_;
  staged_ += room;
  return at;
}

float* Recorder::temporary(std::size_t floats) {
  const std::size_t bytes = aligned(floats * sizeof(float), 64);
  if (temporary_used_ + bytes > temporary_size_) {
    if (bytes > temporary_size_) {  // the old block stays: the record that is made may read it
      temporary_size_ = std::max(2 * bytes, kFirstTemporary);
      temporary_ = device_.alloc(temporary_size_);
    }
    temporary_used_ = 0;  // from the front again: what is there is still read by earlier records, which go first
  }
  const DeviceAddress at = temporary_ + temporary_used_;
  temporary_used_ += bytes;
  return reinterpret_cast<float*>(static_cast<std::uintptr_t>(at));
}

// ---- waves ---------------------------------------------------------------------------------------------------------

bool Recorder::depends_on(const Wave& wave) const {
  bool near = false;
  for (const Touch& t : touched_) near = near || t.span.meets(wave.written) || (t.written && t.span.meets(wave.read));
  if (!near) return false;
  for (u32 l = wave.first_touch; l != kNone; l = links_[l].next)
    for (const Touch& t : touched_)
      if ((t.written || links_[l].touch.written) && t.span.meets(links_[l].touch.span)) return true;
  return false;
}

void Recorder::join(Wave& wave) {
  for (const Touch& t : touched_) {
    (t.written ? wave.written : wave.read).join(t.span);
    links_.push_back({t, wave.first_touch});
    wave.first_touch = static_cast<u32>(links_.size() - 1);
  }
}

u32 Recorder::find_wave(Kernel kernel) {
  u32 found = kNone;
  for (std::size_t i = waves_.size(), end = i > kLookBack ? i - kLookBack : 0; i-- > end;) {
    const Wave& w = waves_[i];
    if (depends_on(w)) break;
    if (w.kernel == kernel && w.records < kMostRecords) found = static_cast<u32>(i);
  }
  return found;
}

void Recorder::append(Kernel kernel, const void* record, std::size_t size, std::ptrdiff_t threads) {
  u32 at = find_wave(kernel);
  if (at == kNone) {
    at = static_cast<u32>(waves_.size());
    waves_.push_back({kernel, 0, 1, static_cast<u32>(size), kNone, 0, {}, {}});
  }
  Wave& wave = waves_[at];
  const std::ptrdiff_t each = threads_of(kernel);
  const std::ptrdiff_t blocks = std::min<std::ptrdiff_t>((threads + each - 1) / each, kMostBlocks);
  wave.blocks = std::max(wave.blocks, static_cast<u32>(std::max<std::ptrdiff_t>(blocks, 1)));
  ++wave.records;
  join(wave);
  touched_.clear();
  const std::size_t from = records_.size();
  records_.resize(from + size);
  std::memcpy(records_.data() + from, record, size);
  entries_.push_back({at, static_cast<u32>(from), static_cast<u32>(size)});
  if (!eager) return;
  flush();
  device_.wait();
}

// Records go behind the lists, wave by wave; then all of it is copied, and the waves are launched.
void Recorder::flush() {
  if (entries_.empty() && staged_ == 0) return;
  if (staged_ && staged_ + records_.size() > stages_[stage_].size) send(staged_);  // no room behind the lists
  if (staged_ == 0) begin_stage(records_.size());
  Stage& s = stages_[stage_];
  std::size_t at = staged_;
  for (Wave& w : waves_) {
    w.at = static_cast<u32>(at);
    at += static_cast<std::size_t>(w.records) * w.size;
  }
  for (const Entry& e : entries_) {
    Wave& w = waves_[e.wave];
    std::memcpy(s.host + w.at, records_.data() + e.at, e.size);
    w.at += e.size;
  }
  send(at);
  for (const Wave& w : waves_)
    device_.launch(w.kernel, s.device + w.at - static_cast<std::size_t>(w.records) * w.size, w.records, w.blocks);
  forget();
}

void Recorder::forget() {
  records_.clear();
  entries_.clear();
  waves_.clear();
  links_.clear();
}

void Recorder::download(void* to, u64 from, std::size_t bytes) {
  flush();
  device_.download(to, from, bytes);
}

}  // namespace dnl::cuda
