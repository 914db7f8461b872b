// The CUDA backend: ops that are written in kernels alone run on the card by writing records (table.h); the others run
// on the host (on_host.h).
//
// The card is opened when it is first used. One stream does everything in order, so the backend is used by one thread
// at a time. Nothing waits for the card but what hands numbers to the host.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>

#include "backends/cuda/on_host.h"
#include "backends/cuda/table.h"
#include "backends/cuda/update.h"
#include "op/backend.h"

namespace dnl::cuda {
namespace {

// Numbers on the card, which later records of the call read; lists on the host.
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

struct Card {
  Device device;
  Recorder recorder;
  CallScratch scratch{recorder};

  u64 calls = 0, row_calls = 0, updates = 0, on_host = 0;

  Card(int ordinal, const void* image) : device(ordinal, image), recorder(device) {}
  BackendCounts counts() const {
    const Counters& c = device.counters;
    return {calls, row_calls, updates, c.uploads, c.bytes_up, c.downloads, c.bytes_down, c.launches, c.waits, on_host};
  }
};

std::recursive_mutex g_lock;
std::unique_ptr<Card> g_card;

// The kernels for this card: DYNET_LITE_CUDA_IMAGE names a file that tools/device_image.py has made. A stand-in for the
// driver (DYNET_LITE_LIBCUDA) has its own.
std::string read_image() {
  const char* name = std::getenv("DYNET_LITE_CUDA_IMAGE");
  if (!name || !*name) {
    if (std::getenv("DYNET_LITE_LIBCUDA")) return "";
    fail(ErrorKind::Runtime,
         "[cuda] there are no kernels for a card: DYNET_LITE_CUDA_IMAGE must name a file of tools/device_image.py");
  }
  std::ifstream file(name, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) fail(ErrorKind::Runtime, std::string("[cuda] the kernels in ") + name + " cannot be read");
  return bytes.str();
}

Card& card() {
  if (!g_card) {
    std::string why;
    if (!find_driver(&why)) fail(ErrorKind::Runtime, "[cuda] " + why);
    g_card = std::make_unique<Card>(0, read_image().data());
    use(&g_card->recorder);
  }
  return *g_card;
}

void* alloc(std::size_t bytes) {
  const std::lock_guard<std::recursive_mutex> lock(g_lock);
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(card().device.alloc(bytes)));
}
void give_back(void* p) {
  const std::lock_guard<std::recursive_mutex> lock(g_lock);
  try {
    card().recorder.flush();  // what was recorded may still use it
  } catch (const Error&) { card().recorder.forget(); }
  card().device.free(static_cast<DeviceAddress>(reinterpret_cast<std::uintptr_t>(p)));
}

// One number of each array: all in one launch, and the card is waited for once.
Vec<double> reduce_all(Recorder& rec, device::Reduction what, std::size_t k, const Numbers* arrays) {
  Vec<double> out;
  out.assign(k, 0.0);
  if (k == 0) return out;
  const u64 to = rec.stage(out.data(), k * sizeof(double));
  for (std::size_t i = 0; i < k; ++i) {
    device::Reduce r{};
    r.to = rec.writes_bytes(to + i * sizeof(double), sizeof(double));
    r.n = static_cast<std::ptrdiff_t>(arrays[i].n);
    r.x = rec.reads(arrays[i].at, r.n);
    r.what = what;
    rec.add(Kernel::reduce, r, 1);
  }
  rec.download(out.data(), to, k * sizeof(double));
  return out;
}

// While one lives, this thread has the card.
class Turn {
 public:
  Turn() : lock_(g_lock), card_(card()), kernels_(table(), products()) {}
  Recorder& recorder() { return card_.recorder; }
  Card& its_card() { return card_; }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  Card& card_;
  UseKernels kernels_;
};

class Cuda final : public Backend {
 public:
  Cuda() : Backend(false) {}
  const char* name() const override { return "cuda"; }
  bool supports(OpId op) const override { return !op_def(op).keeps_addresses; }
  MemorySource memory() const override { return {alloc, give_back}; }

  BackendCounts counts() const override {
    const std::lock_guard<std::recursive_mutex> lock(g_lock);
    return g_card ? g_card->counts() : BackendCounts{};
  }

  void forward(const Call& c) override { run(c, Part::Forward, 0); }
  void backward(const Call& c) override { run(c, Part::Backward, 0); }
  void backward_shared(const Call& c, int wrt) override { run(c, Part::BackwardShared, wrt); }

  void fill_rows(std::size_t k, std::size_t n, float v, Rows to) override {
    Turn turn;
    ++turn.its_card().row_calls;
    const idx rows = static_cast<idx>(k), floats = static_cast<idx>(n);
    if (rows * floats == 0) return;
    device::Fill r{turn.recorder().writes(to, rows, floats), rows, floats, v};
    turn.recorder().add(Kernel::fill, r, rows * floats);
  }
  void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) override {
    Turn turn;
    ++turn.its_card().row_calls;
    table().copy_rows(static_cast<idx>(k), static_cast<idx>(n), from, to);
  }
  void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) override {
    Turn turn;
    ++turn.its_card().row_calls;
    table().add_rows(static_cast<idx>(k), static_cast<idx>(n), from, to);
  }
  void scale_rows(std::size_t k, std::size_t n, const float* factor, Rows rows) override {
    Turn turn;
    ++turn.its_card().row_calls;
    for (std::size_t m = 0; m < k; ++m)
      table().scale(static_cast<idx>(n), factor[m], rows[static_cast<std::ptrdiff_t>(m)]);
  }
  void swap_rows(std::size_t k, std::size_t n, Rows a, Rows b) override {
    Turn turn;
    ++turn.its_card().row_calls;
    const idx floats = static_cast<idx>(n);
    for (std::ptrdiff_t m = 0; m < static_cast<std::ptrdiff_t>(k); ++m) {
      float* between = turn.recorder().temporary(n);
      const Rows here{a[m], 0, nullptr}, there{b[m], 0, nullptr}, aside{between, 0, nullptr};
      table().copy_rows(1, floats, here, aside);
      table().copy_rows(1, floats, there, here);
      table().copy_rows(1, floats, aside, there);
    }
  }
  std::size_t first_not_finite(std::size_t k, const Numbers* arrays) override {
    Turn turn;
    const Vec<double> not_finite = reduce_all(turn.recorder(), device::kFinite, k, arrays);
    for (std::size_t i = 0; i < k; ++i)
      if (not_finite[i] != 0) return i;
    return k;
  }
  std::size_t count_nonzero(std::size_t n, const float* x) override {
    Turn turn;
    const Numbers one{x, n};
    return static_cast<std::size_t>(reduce_all(turn.recorder(), device::kNonzero, 1, &one)[0]);
  }
  double sum_squares(std::size_t k, const Numbers* arrays) override {
    Turn turn;
    double sum = 0;
    for (const double each : reduce_all(turn.recorder(), device::kSumSquares, k, arrays)) sum += each;
    return sum;
  }
  void update(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all) override {
    Turn turn;
    ++turn.its_card().updates;
    for (std::size_t i = 0; i < k; ++i) cuda::update(turn.recorder(), rule, setting, all[i]);
  }
  void download(std::size_t n, const float* from, float* to) override {
    Turn turn;
    turn.recorder().download(to, static_cast<u64>(reinterpret_cast<std::uintptr_t>(from)), n * sizeof(float));
  }
  void upload(std::size_t n, const float* from, float* to) override {
    Turn turn;
    const u64 staged = turn.recorder().stage(from, n * sizeof(float));
    float* at = reinterpret_cast<float*>(static_cast<std::uintptr_t>(staged));
    table().copy_rows(1, static_cast<idx>(n), Rows{at, 0, nullptr}, Rows{to, 0, nullptr});
  }

 private:
  static void run(const Call& call, Part part, int wrt) {
    const std::lock_guard<std::recursive_mutex> lock(g_lock);
    Card& now = card();
    ++now.calls;
    if (!call.op->in_kernels) {
      ++now.on_host;
      return run_on_host(now.recorder, call, part, wrt);
    }
    const UseKernels kernels(table(), products());
    Call c = call;
    now.scratch.rewind();
    c.scratch = &now.scratch;
    c.transposes = nullptr;  // a cache of the processor's
    if (part == Part::Forward)
      c.op->forward(c);
    else if (part == Part::Backward)
      c.op->backward(c);
    else
      c.op->backward_shared(c, wrt);
  }
};

Cuda backend;
const RegisterBackend registered("cuda", &backend);

}  // namespace

}  // namespace dnl::cuda
