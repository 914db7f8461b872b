// The backend of tests: the CPU's kernels on memory that the host cannot reach (memory.h).
//
// It is what a device is to the rest of the engine, without a device: who follows an address outside of a backend dies,
// who hands an address of the host to a backend gets an error, and what has not been uploaded is NaN. It counts what
// would cost a device time.
#include <atomic>
#include <cmath>
#include <mutex>

#include "backends/apart/memory.h"
#include "op/backend.h"

namespace dnl {
namespace {

// Lists of translated addresses, and what kernels work in, which the CPU's can reach. Of one thread.
class Room final : public Scratch {
 public:
  void begin() {
    lists_.rewind();
    floats_.rewind();
  }
  float* alloc(std::size_t n) override { return floats_.floats(n); }
  void* list(std::size_t n) override { return lists_.alloc_bytes(n); }
  Rows rows(Rows r, std::size_t k) {
    if (!r.wanted()) return r;
    if (r.regular()) return Rows{behind(r.base), r.stride, nullptr};
    float** at = array<float*>(k);
    for (std::size_t m = 0; m < k; ++m) at[m] = behind(r.ptr[m]);
    return Rows{nullptr, 0, at};
  }
  const Rows* all_rows(const Rows* rows_of, int n, int members) {
    if (!rows_of) return nullptr;
    Rows* to = array<Rows>(static_cast<std::size_t>(n) + 1);
    for (int j = 0; j < n; ++j) to[j] = rows(rows_of[j], static_cast<std::size_t>(members));
    return to;
  }
  Call call(const Call& c) {
    begin();
    Call t = c;
    t.x = all_rows(c.x, c.nargs, c.members);
    t.y = all_rows(c.y, c.n_outputs, c.members);
    t.dy = all_rows(c.dy, c.n_outputs, c.members);
    t.dx = all_rows(c.dx, c.nargs, c.members);
    t.scratch = this;
    return t;
  }

 private:
  Arena lists_, floats_;
};

Room& room() {
  static thread_local Room of_thread;
  of_thread.begin();
  return of_thread;
}

class Apart final : public Backend {
 public:
  Apart() : Backend(false) {}
  const char* name() const override { return "apart"; }
  MemorySource memory() const override { return {apart_alloc, apart_free}; }
  ProductCounts product_counts() const override { return host_backend().product_counts(); }
  std::unique_ptr<PassCache> pass_cache() override { return host_backend().pass_cache(); }
  BackendCounts counts() const override {
    return {calls_, row_calls_, updates_, uploads_, uploaded_, downloads_, downloaded_};
  }

  void forward(const Call& c) override { cpu(calls_).forward(room().call(c)); }
  void backward(const Call& c) override { cpu(calls_).backward(room().call(c)); }
  void backward_shared(const Call& c, int wrt) override { cpu(calls_).backward_shared(room().call(c), wrt); }

  void fill_rows(std::size_t k, std::size_t n, float v, Rows to) override {
    cpu(row_calls_).fill_rows(k, n, v, room().rows(to, k));
  }
  void copy_rows(std::size_t k, std::size_t n, Rows from, Rows to) override {
    Room& r = room();
    cpu(row_calls_).copy_rows(k, n, r.rows(from, k), r.rows(to, k));
  }
  void add_rows(std::size_t k, std::size_t n, Rows from, Rows to) override {
    Room& r = room();
    cpu(row_calls_).add_rows(k, n, r.rows(from, k), r.rows(to, k));
  }
  void scale_rows(std::size_t k, std::size_t n, const float* factor, Rows rows) override {
    cpu(row_calls_).scale_rows(k, n, factor, room().rows(rows, k));
  }
  void swap_rows(std::size_t k, std::size_t n, Rows a, Rows b) override {
    Room& r = room();
    cpu(row_calls_).swap_rows(k, n, r.rows(a, k), r.rows(b, k));
  }
  std::size_t first_not_finite(std::size_t k, const Numbers* arrays) override {
    return cpu(downloads_).first_not_finite(k, numbers(k, arrays));
  }
  double sum_squares(std::size_t k, const Numbers* arrays) override {
    return cpu(downloads_).sum_squares(k, numbers(k, arrays));
  }
  void update(const UpdateRule& rule, const UpdateSetting& setting, std::size_t k, const UpdateTensor* all) override {
    UpdateTensor* to = room().array<UpdateTensor>(k);
    for (std::size_t i = 0; i < k; ++i) {
      UpdateTensor& t = to[i] = all[i];
      t.w = behind(t.w);
      t.g = behind(t.g);
      for (float*& s : t.s) s = behind(s);
      t.from = behind(t.from);
      t.old = behind(t.old);
    }
    UpdateSetting s = setting;
    s.factor = behind(s.factor);
    cpu(updates_).update(rule, s, k, to);
  }
  bool clip_factor(std::size_t k, const Numbers* arrays, double most, float* to) override {
    const double norm = std::sqrt(cpu(row_calls_).sum_squares(k, numbers(k, arrays)));
    behind(to)[0] = !std::isfinite(norm) ? NAN : norm > most ? static_cast<float>(most / norm) : 1.f;
    behind(to)[1] = static_cast<float>(norm);
    return true;
  }
  void download(std::size_t n, const float* from, float* to) override {
    const std::lock_guard<std::mutex> lock(late_lock_);
    ++downloads_;
    for (const Late& l : late_) copy(l.n, l.from, l.to);
    late_.clear();
    copy(n, from, to);
  }
  void download_later(std::size_t n, const float* from, float* to) override {
    const std::lock_guard<std::mutex> lock(late_lock_);
    late_.push_back({n, from, to});
  }
  void upload(std::size_t n, const float* from, float* to) override {
    uploaded_ += n * sizeof(float);
    cpu(uploads_).upload(n, from, behind(to));
  }

 private:
  using Count = std::atomic<u64>;
  static const Numbers* numbers(std::size_t k, const Numbers* arrays) {
    Numbers* at = room().array<Numbers>(k);
    for (std::size_t i = 0; i < k; ++i) at[i] = {arrays[i].n ? behind(arrays[i].at) : nullptr, arrays[i].n};
    return at;
  }
  static Backend& cpu(Count& count) {
    ++count;
    return host_backend();
  }

  struct Late {
    std::size_t n;
    const float* from;
    float* to;
  };
  void copy(std::size_t n, const float* from, float* to) {
    downloaded_ += n * sizeof(float);
    host_backend().download(n, behind(from), to);
  }

  std::mutex late_lock_;
  Vec<Late> late_;
  Count calls_{0}, row_calls_{0}, updates_{0}, uploads_{0}, uploaded_{0}, downloads_{0}, downloaded_{0};
};

void register_apart() {
  static Apart apart;
  static const RegisterBackend registered("apart", &apart);
}
const bool done = apart_memory_exists() && (register_apart(), true);

}  // namespace
}  // namespace dnl
