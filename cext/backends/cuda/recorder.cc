#include "backends/cuda/recorder.h"

#include <algorithm>
#include <cstring>

namespace dnl::cuda {
namespace {

constexpr std::size_t kFirstStage = std::size_t(1) << 22, kFirstTemporary = std::size_t(1) << 22;
constexpr u32 kMostRecords = 65535, kMostBlocks = 1024;
constexpr std::size_t kMostSpans = 256;  // of one list of rows; more are taken for one

std::size_t aligned(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

}  // namespace

Recorder::Recorder(Device& device) : device_(device) {}

Recorder::~Recorder() = default;  // the GPU's memory goes with the process

// ---- what a record touches ---------------------------------------------------------------------------------------

u64 Recorder::touch(const float* p, std::ptrdiff_t n, bool written) {
  if (!p) return 0;
  const u64 at = address(p);
  touched_.push_back({{at, at + static_cast<u64>(n) * sizeof(float)}, written});
  return at;
}

// Rows that lie one behind the other are one span; where there are too many, so are all of a block of memory. Not of
// several: what lies between two blocks is another thing in each process, and so would be what waits for what.
void Recorder::touch_list(const Rows& rows, std::ptrdiff_t k, u64 length, bool written) {
  const std::size_t before = touched_.size();
  Span run{0, 0};
  for (std::ptrdiff_t m = 0; m < k; ++m) {
    const u64 at = address(rows[m]);
    if (at != run.end) {
      if (m > 0) touched_.push_back({run, written});
      run.begin = at;
    }
    run.end = at + length;
  }
  if (k > 0) touched_.push_back({run, written});
  if (touched_.size() - before > kMostSpans) join_touched(before);
}
void Recorder::join_touched(std::size_t from) {
  Vec<Touch> joined;  // by block
  Span block{0, 0};
  Touch* last = nullptr;
  for (std::size_t i = from; i < touched_.size(); ++i) {
    const Touch& t = touched_[i];
    if (t.span.begin < block.begin || t.span.begin >= block.end) {
      block = device_.block_of(t.span.begin);
      last = std::find_if(joined.begin(), joined.end(), [&](const Touch& j) { return block.meets(j.span); });
      if (last == joined.end()) {
        joined.push_back(t);
        last = &joined.back();
      }
    }
    last->span.join(t.span);
  }
  touched_.resize(from);
  touched_.append(joined);
}

device::Rows Recorder::touch(const Rows& rows, std::ptrdiff_t k, std::ptrdiff_t n, bool written) {
  if (!rows.wanted()) return {};
  const u64 length = static_cast<u64>(n) * sizeof(float);
  if (rows.packed(n))
    touched_.push_back({{address(rows.base), address(rows.base) + static_cast<u64>(k) * length}, written});
  else
    touch_list(rows, rows.regular() && rows.stride == 0 ? std::min<std::ptrdiff_t>(k, 1) : k, length, written);
  static_assert(sizeof(float*) == sizeof(u64), "addresses have 64 bits");
  if (!rows.ptr) return {address(rows.base), rows.stride, 0};
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
  const std::size_t size = std::max(aligned(bytes, kFirstStage), 2 * s.size);
  s.host = nullptr;  // there is none, of no size, until all of it is there
  s.device = 0;
  s.size = 0;
  if (!s.passed) s.passed = device_.make_mark();
  s.host = static_cast<char*>(device_.alloc_host(size));
  s.device = device_.alloc(size);
  s.size = size;
}

// The next buffer's turn comes when the GPU has read this one.
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
    begin_stage(16 * room);  // for the other lists of the record: they stay until it has run
  }
  Stage& s = stages_[stage_];
  std::memcpy(s.host + staged_, p, bytes);
  const u64 at = s.device + staged_;
  staged_ += room;
  return at;
}

void Recorder::make_room(std::size_t bytes) {
  const std::size_t room = aligned(bytes, 16);
  if (staged_ && staged_ + records_.size() + room > stages_[stage_].size) flush();
  if (staged_ == 0) begin_stage(records_.size() + room);
}

float* Recorder::temporary(std::size_t floats) {
  const std::size_t bytes = aligned(floats * sizeof(float), 64);
  if (eager) temporary_taken_ = 0;  // functions of the table alone: no calls begin
  if (temporary_used_ + bytes > temporary_size_) {
    // From the front again: what earlier calls left there is still read by their records, which go first.
    temporary_taken_ += temporary_size_ - temporary_used_;
    temporary_used_ = 0;
  }
  if (temporary_taken_ + bytes > temporary_size_) {  // the old block stays: this call may read it
    const std::size_t size = std::max(2 * (temporary_taken_ + bytes), kFirstTemporary);
    temporary_ = device_.alloc(size);
    temporary_size_ = size;
    temporary_used_ = temporary_taken_ = 0;
  }
  const DeviceAddress at = temporary_ + temporary_used_;
  temporary_used_ += bytes;
  temporary_taken_ += bytes;
  return floats_at(at);
}

// ---- waves ---------------------------------------------------------------------------------------------------------

u32 Recorder::find_wave(Kernel kernel, std::size_t size) {
  u32 first = 0;
  for (const Touch& t : touched_) first = traffic_.earliest(t.span, t.written, first);
  Vec<u32>& mine = waves_of_[static_cast<int>(kernel)];
  const u32* w = std::lower_bound(mine.begin(), mine.end(), first,
                                  [&](u32 wave, u32 level) { return waves_[wave].level < level; });
  for (; w != mine.end(); ++w)
    if (waves_[*w].records < kMostRecords) return *w;
  // As early as may be, so that what depends on it still finds waves to join.
  const u32 level = mine.empty() ? first : std::max(first, waves_[mine.back()].level);
  mine.push_back(static_cast<u32>(waves_.size()));
  waves_.push_back({kernel, level, 0, 1, static_cast<u32>(size), 0});
  return mine.back();
}

u32 Recorder::join_wave(Kernel kernel, std::size_t size) {
  const u32 at = find_wave(kernel, size);
  ++waves_[at].records;
  for (const Touch& t : touched_) traffic_.note(t.span, t.written, waves_[at].level);
  touched_.clear();
  return at;
}

void Recorder::append(Kernel kernel, const void* record, std::size_t size, std::ptrdiff_t threads) {
  // There is room to send it before there is a record: a flush, which may be one to give memory back, takes none.
  if (staged_ + records_.size() + size > stages_[stage_].size) flush();
  if (stages_[stage_].size == 0) begin_stage(size);
  const u32 at = join_wave(kernel, size);
  Wave& wave = waves_[at];
  const std::ptrdiff_t each = threads_of(kernel);
  const std::ptrdiff_t blocks = std::min<std::ptrdiff_t>((threads + each - 1) / each, kMostBlocks);
  wave.blocks = std::max(wave.blocks, static_cast<u32>(std::max<std::ptrdiff_t>(blocks, 1)));
  const std::size_t from = records_.size();
  records_.resize(from + size);
  std::memcpy(records_.data() + from, record, size);
  entries_.push_back({at, static_cast<u32>(from), static_cast<u32>(size)});
  if (!eager) return;
  flush();
  device_.wait();
}

void Recorder::add(const Gemm& product) {
  products_.push_back({join_wave(Kernel::count, 0), product});
  if (!eager) return;
  flush();
  device_.wait();
}

// Records go behind the lists, wave by wave; then all of it is copied, and the waves are launched by level.
void Recorder::flush() {
  launch_rest();
  if (waves_.empty() && staged_ == 0) return;
  if (staged_ == 0 && !records_.empty()) begin_stage(records_.size());
  Stage& s = stages_[stage_];
  std::size_t at = staged_;
  for (Wave& w : waves_) {
    w.at = at;
    at += static_cast<std::size_t>(w.records) * w.size;
  }
  for (const Entry& e : entries_) {
    Wave& w = waves_[e.wave];
    std::memcpy(s.host + w.at, records_.data() + e.at, e.size);
    w.at += e.size;
  }
  if (at > 0) send(at);  // products by cuBLAS alone need nothing
  line_up(s.device);
  begin_again();
  launch_rest();
}

void Recorder::line_up(DeviceAddress records) {
  std::stable_sort(products_.begin(), products_.end(),
                   [](const Product& a, const Product& b) { return a.wave < b.wave; });
  const Product* next = products_.begin();
  Vec<u32> order;
  for (u32 i = 0; i < waves_.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](u32 a, u32 b) { return waves_[a].level < waves_[b].level; });
  for (const u32 i : order) {
    const Wave& w = waves_[i];
    if (w.kernel == Kernel::count)
      for (u32 k = 0; k < w.records; ++k) launches_.push_back({w.kernel, 0, 0, 0, (next++)->gemm});
    else
      launches_.push_back(
          {w.kernel, records + w.at - static_cast<std::size_t>(w.records) * w.size, w.records, w.blocks, Gemm{}});
  }
}

// Each once: if one fails, for want of memory perhaps, the next flush goes on with it.
void Recorder::launch_rest() {
  if (launches_.empty()) return;
  device_.begin_stretch();
  for (; launched_ < launches_.size(); ++launched_) {
    const Launch& l = launches_[launched_];
    if (l.kernel == Kernel::count)
      device_.product(l.product);
    else
      device_.launch(l.kernel, l.records, l.count, l.blocks);
  }
  device_.end_stretch();
  launches_.clear();
  launched_ = 0;
}

// Not what the record that is being made touches: a flush may come in between.
void Recorder::begin_again() {
  records_.clear();
  entries_.clear();
  products_.clear();
  waves_.clear();
  for (Vec<u32>& w : waves_of_) w.clear();
  traffic_.clear();
}
void Recorder::forget() {
  begin_again();
  launches_.clear();
  launched_ = 0;
  late_.clear();
  touched_.clear();
}

void Recorder::download(void* to, u64 from, std::size_t bytes) {
  flush();
  for (const Late& l : late_) device_.copy_to_host(l.to, l.from, l.bytes);
  late_.clear();
  device_.copy_to_host(to, from, bytes);
  device_.wait();
}

}  // namespace dnl::cuda
