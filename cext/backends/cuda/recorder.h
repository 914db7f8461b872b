// Work for the card is written down first and launched later, many pieces at a time.
//
// A record (kernels/records.h) is one call of the kernel table. Records of one kernel that do not touch each other's
// memory become one launch, a wave: a record joins the earliest wave of its kernel behind everything that it depends
// on. What depends on what is told by the memory that is read and written, so any order of calls is right, and the
// same program makes the same waves. flush() copies records and lists to the card at once and launches the waves.
// Who may include: backends/cuda. Includes: device.h, kernels/records.h, base/.
#pragma once
#include <type_traits>

#include "backends/cuda/device.h"
#include "base/rows.h"

namespace dnl {
namespace device {
using dnl::u8, dnl::u32, dnl::i32, dnl::u64;
using i64 = long long;
}  // namespace device
}  // namespace dnl
#include "backends/cuda/kernels/records.h"

namespace dnl::cuda {

// Bytes from `begin` to before `end`.
struct Span {
  u64 begin = ~u64(0), end = 0;

  bool meets(const Span& o) const { return begin < o.end && o.begin < end; }
  void join(const Span& o) {
    if (o.begin < begin) begin = o.begin;
    if (o.end > end) end = o.end;
  }
};

class Recorder {
 public:
  explicit Recorder(Device& device);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // What the next record reads and writes. The addresses that come back are those that the record holds.
  u64 reads(const float* p, std::ptrdiff_t n) { return touch(p, n, false); }
  u64 writes(const float* p, std::ptrdiff_t n) { return touch(p, n, true); }
  device::Rows reads(const Rows& rows, std::ptrdiff_t k, std::ptrdiff_t n) { return touch(rows, k, n, false); }
  device::Rows writes(const Rows& rows, std::ptrdiff_t k, std::ptrdiff_t n) { return touch(rows, k, n, true); }
  // The same of memory that stage() gave.
  u64 writes_bytes(u64 at, std::size_t bytes) {
    touched_.push_back({{at, at + bytes}, true});
    return at;
  }
  // A copy on the card, there when the next records run.
  u64 stage(const void* p, std::size_t bytes);

  // Ends a record: `threads` says how many threads could work on it.
  template <class Record>
  void add(Kernel kernel, const Record& record, std::ptrdiff_t threads) {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0, "records are plain");
    append(kernel, &record, sizeof record, threads);
  }
  // Memory for numbers that are read before the next round() of this much.
  float* temporary(std::size_t floats);

  void flush();
  // Instead, when the card has failed: what was recorded will not run.
  void forget();
  // Flushes, waits, and copies.
  void download(void* to, u64 from, std::size_t bytes);

  bool eager = false;  // every record is launched and waited for at once: for tests

 private:
  struct Touch {
    Span span;
    bool written;
  };
  struct Wave {
    Kernel kernel;
    u32 records, blocks, size, first_touch, at;
    Span read, written;  // all of them
  };
  struct Entry {
    u32 wave, at, size;
  };
  struct Link {
    Touch touch;
    u32 next;
  };
  // One upload's worth: a buffer that the card reads from, and its copy there.
  struct Stage {
    char* host = nullptr;
    DeviceAddress device = 0;
    std::size_t size = 0;
    Handle passed = nullptr;
    bool used = false;
  };

  u64 touch(const float* p, std::ptrdiff_t n, bool written);
  device::Rows touch(const Rows& rows, std::ptrdiff_t k, std::ptrdiff_t n, bool written);
  void append(Kernel kernel, const void* record, std::size_t size, std::ptrdiff_t threads);
  u32 find_wave(Kernel kernel);
  bool depends_on(const Wave& wave) const;
  void join(Wave& wave);
  void begin_stage(std::size_t bytes);
  void send(std::size_t bytes);

  Device& device_;
  static constexpr int kStages = 3;
  Stage stages_[kStages];
  int stage_ = 0;
  std::size_t staged_ = 0;  // bytes
  Vec<char> records_;
  Vec<Entry> entries_;
  Vec<Wave> waves_;
  Vec<Link> links_;
  Vec<Touch> touched_;  // by the record that is being made
  DeviceAddress temporary_ = 0;
  std::size_t temporary_size_ = 0, temporary_used_ = 0;
};

}  // namespace dnl::cuda
