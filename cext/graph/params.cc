#include "graph/params.h"

#include <cmath>

namespace dnl {

void copy_numbers(GradientMutex& in_use, Store& numbers, float* to) {
  const GradientLock lock(in_use);
  if (numbers.size()) std::memcpy(to, numbers.host(), numbers.size() * sizeof(float));
}

void Parameter::make_other() {
  const auto is_free = [](const Other& o) { return *o.readers == 0; };
  if (const auto found = std::find_if(others.begin(), others.end(), is_free); found != others.end())
    std::iter_swap(found, others.end() - 1);
  else
    others.emplace_back();
  other().resize(size());
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

void LookupTable::no_row(i64 number) const {
  fail_index("[lookup] row " + std::to_string(number) + " of a table with " + std::to_string(rows) + " rows");
}

// ---- weight decay of rows --------------------------------------------------------------------------------------

void LookupTable::settle_owing(Backend& b, const u32* ids, std::size_t n) {
  const GradientLock lock(in_use);
  pay(b, ids, n, !before.empty(), shared);
}

void LookupTable::pay(Backend& b, const u32* ids, std::size_t n, bool keep, bool remember) {
  if (decay_of_row.empty()) return;
  owing_.clear();
  for (std::size_t k = 0; k < n; ++k) {
    const u32 i = ids ? ids[k] : static_cast<u32>(k);
    if (!owes(i)) continue;
    owing_.push_back({i, decay_of_row[i]});
    decay_of_row[i] = decay_now;  // it may be listed again
  }
  if (owing_.empty()) return;
  try {
    multiply_owing(b, keep, remember);
  } catch (...) {  // without memory they go on owing
    for (const Owing& o : owing_) decay_of_row[o.row] = o.had;
    throw;
  }
}

void LookupTable::multiply_owing(Backend& b, bool keep, bool remember) {
  place_.clear();
  factor_.clear();
  float* const numbers = value.write(b);
  for (const Owing& o : owing_) {
    place_.push_back(numbers + o.row * row_size);
    factor_.push_back(factor(o.had));
    if (keep) before.keep_owing(b, o.row, place_.back(), row_size);
  }
  if (remember) paid_.add(b, owing_, place_, row_size);
  b.scale_rows(owing_.size(), row_size, factor_.data(), Rows{nullptr, 0, place_.data()});
}

float LookupTable::factor(double had) const { return static_cast<float>(std::exp(decay_now - had)); }

void LookupTable::Paid::add(Backend& b, const Vec<Owing>& more, const Vec<float*>& from, std::size_t row_size) {
  const std::size_t n = rows.size(), needed = (n + more.size()) * row_size;
  if (needed > numbers.size()) numbers.grow(b, needed, false);
  rows.append(more);
  b.copy_rows(more.size(), row_size, Rows{nullptr, 0, from.data()},
              Rows{numbers.write(b) + n * row_size, static_cast<std::ptrdiff_t>(row_size), nullptr});
}

void LookupTable::take_back(Backend& b) {
  if (paid_.rows.empty()) return;
  place_.clear();
  float* const numbers = value.write(b);
  for (const Owing& o : paid_.rows) {
    place_.push_back(numbers + o.row * row_size);
    if (!before.empty()) before.keep_owing(b, o.row, place_.back(), row_size);
  }
  b.copy_rows(paid_.rows.size(), row_size, Rows{paid_.numbers.read(b), static_cast<std::ptrdiff_t>(row_size), nullptr},
              Rows{nullptr, 0, place_.data()});
  for (const Owing& o : paid_.rows) decay_of_row[o.row] = o.had;
  paid_.clear();
}

// ---- the host reads and writes ---------------------------------------------------------------------------------

void LookupTable::keep_numbers(u32 first, u32 n) {
  const Needed needed = LiveRuns::of(this_thread());
  if (!needed.any || !read_in_place) return;
  Backend& b = host_backend();
  const bool one = n == 1;
  float* to = one ? before.keep_rows(b, this_thread(), needed, next_moment(), &first, 1, row_size)
                  : before.keep_all(b, this_thread(), needed, next_moment(), size());
  if (!to) return;
  float* const from = value.read(b) + (one ? first * row_size : 0);
  b.copy_rows(1, one ? row_size : size(), Rows{from, 0, nullptr}, Rows{to, 0, nullptr});
}

void LookupTable::overwrite(u32 first, u32 n, const float* from) {
  const GradientLock lock(in_use);
  take_back(host_backend());
  pay(host_backend(), nullptr, rows, !before.empty(), false);
  keep_numbers(first, n);
  ++changes;
  if (n && row_size) std::memcpy(value.host_to_write() + first * row_size, from, n * row_size * sizeof(float));
}

void LookupTable::copy_rows(const u32* ids, std::size_t n, float* to) {
  const GradientLock lock(in_use);
  if (!shared) settle(host_backend(), ids, n);
  const float* from = value.host();
  if (!row_size) return;
  for (std::size_t k = 0; ids && k < n; ++k)
    std::memcpy(to + k * row_size, from + ids[k] * row_size, row_size * sizeof(float));
  if (!ids && n) std::memcpy(to, from, n * row_size * sizeof(float));
  for (std::size_t k = 0; k < n && !decay_of_row.empty(); ++k) {
    const u32 i = ids ? ids[k] : static_cast<u32>(k);
    if (!owes(i)) continue;
    const float f = factor(decay_of_row[i]);
    for (std::size_t j = 0; j < row_size; ++j) to[k * row_size + j] *= f;
  }
}

void LookupTable::copy_kept(float* to, Vec<double>& decay) {
  const GradientLock lock(in_use);
  if (size()) std::memcpy(to, value.host(), size() * sizeof(float));
  decay.clear();
  if (decay_of_row.empty()) return;
  decay.push_back(decay_now);
  decay.append(decay_of_row);
  const float* from = paid_.numbers.host();
  for (const Owing& o : paid_.rows) {
    if (row_size) std::memcpy(to + o.row * row_size, from, row_size * sizeof(float));
    decay[1 + o.row] = o.had;
    from += row_size;
  }
}

void LookupTable::overwrite_kept(const float* from, const double* decay) {
  const GradientLock lock(in_use);
  keep_numbers(0, rows);
  ++changes;
  paid_.clear();
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
