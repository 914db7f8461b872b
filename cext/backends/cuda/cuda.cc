// The CUDA backend: ops that are written in kernels alone run on the GPU by writing records (table.h); the others run
// on the host (on_host.h).
//
// The GPU is opened when it is first used. One stream does everything in order, so the backend is used by one thread
// at a time. Nothing waits for the GPU but what hands numbers to the host.
#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>

#include "backends/cuda/gpus.h"
#include "backends/cuda/on_host.h"
#include "backends/cuda/ops.h"
#include "backends/cuda/table.h"
#include "backends/cuda/update.h"
#include "op/alike.h"
#include "op/backend.h"

namespace dnl::cuda {
namespace {

// Numbers on the GPU, which later records of the call read; lists on the host.
class CallScratch final : public Scratch {
 public:
  explicit CallScratch(Recorder& recorder) : recorder_(recorder) {}
  float* alloc(std::size_t n) override { return recorder_.temporary(n); }
  void* list(std::size_t n) override { return lists_.alloc_bytes(n); }
  void rewind() { lists_.rewind(); }

 private:
  Recorder& recorder_;
  Arena lists_;
};

struct Gpu {
  Device device;
  Recorder recorder;
  CallScratch scratch{recorder};

  u64 calls = 0, row_calls = 0, updates = 0, on_host = 0;
  Part part = Part::Forward;  // of the last call

  explicit Gpu(const Choice& choice) : device(choice.number, choice.image.c_str(), choice.cublas), recorder(device) {}
  BackendCounts counts() const {
    const Counters& c = device.counters;
    return {calls,        row_calls,  updates, c.uploads,  c.bytes_up, c.downloads,
            c.bytes_down, c.launches, c.waits, c.products, on_host};
  }
};

std::recursive_mutex g_lock;
std::unique_ptr<Gpu> g_gpu;

Gpu& gpu() {
  if (!g_gpu) {
    const Choice choice = take_choice();
    try {
      g_gpu = std::make_unique<Gpu>(choice);
    } catch (...) {
      gave_up_choice();
      throw;
    }
    use(&g_gpu->recorder);
  }
  return *g_gpu;
}

void* alloc(std::size_t bytes) {
  const std::lock_guard<std::recursive_mutex> lock(g_lock);
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(gpu().device.alloc(bytes)));
}
void give_back(void* p) {
  const std::lock_guard<std::recursive_mutex> lock(g_lock);
  try {
    Recorder& r = gpu().recorder;
    r.owes() ? r.download(nullptr, 0, 0) : r.flush();  // what was recorded may still use it
  } catch (const Error&) { gpu().recorder.forget(); }
  gpu().device.free(static_cast<DeviceAddress>(reinterpret_cast<std::uintptr_t>(p)));
}

// While one lives, this thread has the GPU.
class Turn {
 public:
  Turn() : lock_(g_lock), gpu_(gpu()), kernels_(table(), products()) { begin_call(); }
  Recorder& recorder() { return gpu_.recorder; }
  Gpu& its_gpu() { return gpu_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  Gpu& gpu_;
  UseKernels kernels_;
};

class Cuda final : public Backend {
 public:
  Cuda() : Backend(false) {}
  const char* name() const override { return "cuda"; }
  bool supports(OpId op) const override {
    const OpDef& def = op_def(op);
    return !def.keeps_addresses || (device_op(def) && !is_on_host(def));
  }
  bool on_host(OpId op) const override { return is_on_host(op_def(op)); }
  MemorySource memory() const override { return {alloc, give_back}; }

  BackendCounts counts() const override {
    const std::lock_guard<std::recursive_mutex> lock(g_lock);
    return g_gpu ? g_gpu->counts() : BackendCounts{};
  }

  void forward(const Call& c) override { run(c, Part::Forward, 0); }
  void backward(const Call& c) override { run(c, Part::Backward, 0); }
  void backward_shared(const Call& c, int wrt) override { run(c, Part::BackwardShared, wrt); }

  void fill_rows(std::size_t k, std::size_t n, float v, Rows to) override {
    Turn turn;
    ++turn.its_gpu().row_calls;
    cuda::fill_rows(static_cast<idx>(k), static_cast<idx>(n), v, to);
  }
  void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) override {
    Turn turn;
    ++turn.its_gpu().row_calls;
    table().copy_rows(static_cast<idx>(k), static_cast<idx>(n), from, to);
  }
  void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) override {
    Turn turn;
    ++turn.its_gpu().row_calls;
    table().add_rows(static_cast<idx>(k), static_cast<idx>(n), from, to);
  }
  void scale_rows(std::size_t k, std::size_t n, const float* factor, Rows rows) override {
    Turn turn;
    ++turn.its_gpu().row_calls;
    for (std::size_t m = 0; m < k; ++m)
      table().scale(static_cast<idx>(n), factor[m], rows[static_cast<std::ptrdiff_t>(m)]);
  }
  void swap_rows(std::size_t k, std::size_t n, Rows a, Rows b) override {
    Turn turn;
    ++turn.its_gpu().row_calls;
    const idx floats = static_cast<idx>(n);
    for (std::ptrdiff_t m = 0; m < static_cast<std::ptrdiff_t>(k); ++m) {
      begin_call();  // each pair needs room for a row
      float* between = turn.recorder().temporary(n);
      const Rows here{a[m], 0, nullptr}, there{b[m], 0, nullptr}, aside{between, 0, nullptr};
      table().copy_rows(1, floats, here, aside);
      table().copy_rows(1, floats, there, here);
      table().copy_rows(1, floats, aside, there);
    }
  }
  std::size_t first_not_finite(std::size_t k, const Numbers* arrays) override {
    Turn turn;
    const Vec<double> not_finite = reduce(device::kFinite, k, arrays);
    return static_cast<std::size_t>(
        std::find_if(not_finite.begin(), not_finite.end(), [](double n) { return n != 0; }) - not_finite.begin());
  }
  double sum_squares(std::size_t k, const Numbers* arrays) override {
    Turn turn;
    const Vec<double> sums = reduce(device::kSumSquares, k, arrays);
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }
  bool clip_factor(std::size_t k, const Numbers* arrays, double most, float* to) override {
    Turn turn;
    cuda::clip_factor(k, arrays, most, to);
    return true;
  }
  void update(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all) override {
    Turn turn;
    ++turn.its_gpu().updates;
    for (std::size_t i = 0; i < k; ++i) cuda::update(turn.recorder(), rule.id, setting, all[i]);
  }
  void download(std::size_t n, const float* from, float* to) override {
    Turn turn;
    turn.recorder().download(to, address(from), n * sizeof(float));
  }
  void download_later(std::size_t n, const float* from, float* to) override {
    Turn turn;
    turn.recorder().download_later(to, address(from), n * sizeof(float));
  }
  void upload(std::size_t n, const float* from, float* to) override {
    Turn turn;
    constexpr std::size_t kPiece = std::size_t(1) << 22;  // floats: buffers stay, of the size of the largest
    for (std::size_t at = 0; at < n; at += kPiece) {
      const std::size_t some = std::min(kPiece, n - at);
      turn.recorder().make_room(some * sizeof(float));
      const u64 staged = turn.recorder().stage(from + at, some * sizeof(float));
      table().copy_rows(1, static_cast<idx>(some), Rows{floats_at(staged), 0, nullptr}, Rows{to + at, 0, nullptr});
    }
  }

 private:
  static void run(const Call& call, Part part, int wrt) {
    const std::lock_guard<std::recursive_mutex> lock(g_lock);
    Gpu& now = gpu();
    // It computes the forward pass while the host writes down the backward pass, which must come later anyway.
    if (part != Part::Forward && now.part == Part::Forward) now.recorder.flush();
    now.part = part;
    begin_call();
    ++now.calls;
    if (is_on_host(*call.op)) {
      ++now.on_host;
      return each_alike(call, [&](const Call& c) { run_on_host(now.recorder, c, part, wrt); });
    }
    const UseKernels kernels(table(), products());
    Call c = call;
    now.scratch.rewind();
    c.scratch = &now.scratch;
    const DeviceOp* own = device_op(*call.op);
    if (!own)
      run_part(c, part, wrt);
    else
      each_alike(c, [&](const Call& alike) { run_own(*own, alike, part, wrt); });
    end_call();
  }
  static void run_own(const DeviceOp& own, const Call& c, Part part, int wrt) {
    if (part == Part::Forward)
      own.forward(c);
    else if (part == Part::Backward)
      own.backward(c);
    else
      own.backward_shared(c, wrt);
  }
};

Cuda backend;
const RegisterBackend registered("cuda", &backend);

}  // namespace

}  // namespace dnl::cuda
