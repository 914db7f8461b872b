// Work for the GPU is written down first and launched later, many pieces at a time.
//
// A record (kernels/records.h) is one call of the kernel table. Records of one kernel that do not touch each other's
// memory become one launch, a wave: a record joins the earliest wave of its kernel behind everything that it depends
// on. Waves have levels: those of one level do not depend on one another, and a new one has the first that may be. What
// depends on what is told by the memory that is read and written, so any order of calls is right, and the same program
// makes the same waves. flush() copies records and lists to the GPU at once and launches the waves.
// Who may include: backends/cuda. Includes: device.h, traffic.h, kernels/records.h, base/.
#pragma once
#include <type_traits>
#include <utility>

#include "backends/cuda/device.h"
#include "backends/cuda/traffic.h"
#include "base/rows.h"

namespace dnl {
namespace device {
using dnl::u8, dnl::u32, dnl::i32, dnl::u64;
using i64 = long long;
}  // namespace device
}  // namespace dnl
#include "backends/cuda/kernels/records.h"

namespace dnl::cuda {

// Addresses are numbers on the GPU's side, pointers that nobody follows on the engine's.
inline u64 address(const float* p) { return static_cast<u64>(reinterpret_cast<std::uintptr_t>(p)); }
inline float* floats_at(u64 address) { return reinterpret_cast<float*>(static_cast<std::uintptr_t>(address)); }

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
  // A copy on the GPU, there when the next records run.
  u64 stage(const void* p, std::size_t bytes);
  // So much is going to be staged: all of it lies together. For large arrays, and for records of any number of lists.
  void make_room(std::size_t bytes);

  // What the record that is being made touches so far, for later.
  struct Touch {
    Span span;
    bool written;
  };
  using Touched = Vec<Touch>;
  void take_touched(Touched* to) {
    to->clear();
    std::swap(*to, touched_);
  }
  void touch_again(const Touched& touched) {
    for (const Touch& t : touched) touched_.push_back(t);
  }

  // Ends a record: `threads` says how many threads could work on it.
  template <class Record>
  void add(Kernel kernel, const Record& record, std::ptrdiff_t threads) {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % 8 == 0, "records are plain");
    append(kernel, &record, sizeof record, threads);
  }
  // A product by cuBLAS instead, in its place among the waves.
  bool has_cublas() { return device_.has_cublas(); }
  void add(const Gemm& product);
  // A call begins: what one that failed was making is forgotten, and what temporary() gave is free again.
  void begin_call() {
    touched_.clear();
    temporary_taken_ = 0;
  }
  // Memory for numbers that records of this call write and read. What is given in one call lies apart.
  float* temporary(std::size_t floats);

  void flush();
  // Instead, when the GPU has failed: what was recorded will not run.
  void forget();
  // Flushes, waits, and copies.
  void download(void* to, u64 from, std::size_t bytes);
  // Copies when the next download does: what is there then.
  void download_later(void* to, u64 from, std::size_t bytes) { late_.push_back({to, from, bytes}); }
  bool owes() const { return late_.size() > 0; }

  bool eager = false;  // every record is launched and waited for at once: for tests

 private:
  struct Wave {
    Kernel kernel;
    u32 level, records, blocks, size;
    std::size_t at;
  };
  struct Entry {
    u32 wave, at, size;
  };
  struct Product {
    u32 wave;
    Gemm gemm;
  };
  // Of what the GPU has got: a kernel over records, or a product.
  struct Launch {
    Kernel kernel;
    DeviceAddress records;
    u32 count, blocks;
    Gemm product;
  };
  // One upload's worth: a buffer that the GPU reads from, and its copy there.
  struct Stage {
    char* host = nullptr;
    DeviceAddress device = 0;
    std::size_t size = 0;
    Handle passed = nullptr;
    bool used = false;
  };

  struct Late {
    void* to;
    u64 from;
    std::size_t bytes;
  };

  u64 touch(const float* p, std::ptrdiff_t n, bool written);
  device::Rows touch(const Rows& rows, std::ptrdiff_t k, std::ptrdiff_t n, bool written);
  void append(Kernel kernel, const void* record, std::size_t size, std::ptrdiff_t threads);
  u32 find_wave(Kernel kernel, std::size_t size);
  u32 join_wave(Kernel kernel, std::size_t size);
  void line_up(DeviceAddress records);
  void launch_rest();
  void touch_list(const Rows& rows, std::ptrdiff_t k, u64 length, bool written);
  void join_touched(std::size_t from);
  void begin_stage(std::size_t bytes);
  void begin_again();
  void send(std::size_t bytes);

  Device& device_;
  static constexpr int kStages = 3;
  Stage stages_[kStages];
  int stage_ = 0;
  std::size_t staged_ = 0;  // bytes
  Vec<char> records_;
  Vec<Entry> entries_;
  Vec<Product> products_;
  Vec<Wave> waves_;
  Vec<Launch> launches_;             // in order
  std::size_t launched_ = 0;         // so many of them
  Vec<u32> waves_of_[kKernels + 1];  // by level; the last: of products by cuBLAS, whose waves have the kernel `count`
  Traffic traffic_;
  Vec<Late> late_;
  Touched touched_;  // by the record that is being made
  DeviceAddress temporary_ = 0;
  std::size_t temporary_size_ = 0, temporary_used_ = 0, temporary_taken_ = 0;  // the last: by this call
};

}  // namespace dnl::cuda
