#include "graph/params.h"

#include <cmath>

namespace dnl {

void copy_numbers(GradientMutex& in_use, Store& numbers, float* to) {
  const GradientLock lock(in_use);
  if (numbers.size()) std::memcpy(to, numbers.host(), numbers.size() * sizeof(float));
}

void Parameter::keep_numbers() {
  const Needed needed = LiveRuns::of(this_thread());
  if (!needed.any) return;
  const GradientLock lock(in_use);
  Backend& b = host_backend();
  if (float* to = before.keep_all(b, this_thread(), needed, next_moment(), size()))
    b.copy_rows(1, size(), Rows{value.read(b), 0, nullptr}, Rows{to, 0, nullptr});
}

void Parameter::overwrite(const float* from, bool leave) {
  const GradientLock lock(in_use);
  leave ? leave_numbers() : keep_numbers();
  if (size()) std::memcpy(value.host_to_write(), from, size() * sizeof(float));
}

void Parameter::overwrite_grad(const float* from) {
  const GradientLock lock(in_use);
  if (size()) std::memcpy(grad.overwrite(host_backend()), from, size() * sizeof(float));
  touched = true;
  grad_changed();
}

void Parameter::scale_grad(float factor) {
  const GradientLock lock(in_use);
  if (size()) host_backend().scale_rows(1, size(), &factor, Rows{grad.host_to_write(), 0, nullptr});
  grad_changed();
}

void LookupTable::settle_owing(Backend& b, const u32* ids, std::size_t n) {
  const GradientLock lock(in_use);
  pay(b, ids, n, !before.empty());
}

void LookupTable::pay(Backend& b, const u32* ids, std::size_t n, bool keep) {
  if (decay_of_row.empty()) return;
  owing_.clear();
  factor_.clear();
  float* numbers = nullptr;
  for (std::size_t k = 0; k < n; ++k) {
    const u32 i = ids ? ids[k] : static_cast<u32>(k);
    if (!owes(i)) continue;
    if (!numbers) numbers = value.write(b);
    if (keep) before.keep_owing(b, i, numbers + i * row_size, row_size);
    owing_.push_back(numbers + i * row_size);
    factor_.push_back(static_cast<float>(std::exp(decay_now - decay_of_row[i])));
    decay_of_row[i] = decay_now;  // it may be listed again
  }
  if (!owing_.empty()) b.scale_rows(owing_.size(), row_size, factor_.data(), Rows{nullptr, 0, owing_.data()});
}

void LookupTable::keep_numbers() {
  const Needed needed = LiveRuns::of(this_thread());
  if (!needed.any || !read_in_place) return;
  const GradientLock lock(in_use);
  Backend& b = host_backend();
  if (float* to = before.keep_all(b, this_thread(), needed, next_moment(), size()))
    b.copy_rows(1, size(), Rows{value.read(b), 0, nullptr}, Rows{to, 0, nullptr});
}

void LookupTable::keep_row(u32 i) {
  const Needed needed = LiveRuns::of(this_thread());
  if (!needed.any || !read_in_place) return;
  const GradientLock lock(in_use);
  Backend& b = host_backend();
  if (float* to = before.keep_rows(b, this_thread(), needed, next_moment(), &i, 1, row_size))
    b.copy_rows(1, row_size, Rows{value.read(b) + i * row_size, 0, nullptr}, Rows{to, 0, nullptr});
}

void LookupTable::overwrite(u32 first, u32 n, const float* from) {
  const GradientLock lock(in_use);
  settle_all(host_backend());
  n == 1 ? keep_row(first) : keep_numbers();
  if (n && row_size) std::memcpy(value.host_to_write() + first * row_size, from, n * row_size * sizeof(float));
}

void LookupTable::copy_rows(const u32* ids, std::size_t n, float* to) {
  const GradientLock lock(in_use);
  settle(host_backend(), ids, n);
  const float* from = value.host();
  if (!row_size) return;
  for (std::size_t k = 0; ids && k < n; ++k)
    std::memcpy(to + k * row_size, from + ids[k] * row_size, row_size * sizeof(float));
  if (!ids && n) std::memcpy(to, from, n * row_size * sizeof(float));
}

void LookupTable::copy_kept(float* to, Vec<double>& decay) {
  const GradientLock lock(in_use);
  if (size()) std::memcpy(to, value.host(), size() * sizeof(float));
  decay.clear();
  if (decay_of_row.empty()) return;
  decay.push_back(decay_now);
  decay.append(decay_of_row);
}

void LookupTable::overwrite_kept(const float* from, const double* decay) {
  const GradientLock lock(in_use);
  keep_numbers();
  if (size()) std::memcpy(value.host_to_write(), from, size() * sizeof(float));
  decay_now = decay ? decay[0] : 0.0;
  decay_of_row.clear();
  if (decay) decay_of_row.append(decay + 1, rows);
}

void LookupTable::copy_grad(Vec<u32>& ids, Vec<float>& to) {
  const GradientLock lock(in_use);
  ids.copy(touched);
  to.copy(gradients(host_backend()), touched.size() * row_size);
}

void LookupTable::copy_grad_rows(const u32* ids, std::size_t n, float* to) {
  const GradientLock lock(in_use);
  const float* from = gradients(host_backend());
  for (std::size_t k = 0; k < n; ++k, to += row_size) {
    const i32 s = slot_of_row[ids[k]];
    if (s >= 0)
      std::copy_n(from + static_cast<std::size_t>(s) * row_size, row_size, to);
    else
      std::fill_n(to, row_size, 0.f);
  }
}

void LookupTable::overwrite_grad(const u32* ids, std::size_t n, const float* from) {
  const GradientLock lock(in_use);
  clear_grad();
  for (std::size_t k = 0; k < n; ++k) slot(ids[k]);
  float* to = gradients(host_backend(), false);
  if (n && row_size) std::memcpy(to, from, n * row_size * sizeof(float));
}

void LookupTable::scale_grad(float factor) {
  const GradientLock lock(in_use);
  const std::size_t n = touched.size() * row_size;
  float* numbers = gradients(host_backend());
  if (n) host_backend().scale_rows(1, n, &factor, Rows{numbers, 0, nullptr});
}

}  // namespace dnl
