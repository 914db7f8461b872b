#include "graph/versions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/tls.h"

namespace dnl {
namespace {

std::atomic<Moment> g_now{0};
std::mutex g_listing;

std::vector<const LiveRuns*>& listed() {
  static std::vector<const LiveRuns*>& all = *new std::vector<const LiveRuns*>;  // executors may outlive static objects
  return all;
}

}  // namespace

Moment now() { return g_now.load(std::memory_order_acquire); }
Moment next_moment() { return g_now.fetch_add(1, std::memory_order_acq_rel) + 1; }

Owner this_thread() {
  static thread_local char mark DNL_QUICK_TLS;
  return &mark;
}

// ---- who needs old numbers -------------------------------------------------------------------------------------

void LiveRuns::set(Owner owner, Moment oldest, Moment newest) {
  const std::lock_guard<std::mutex> lock(g_listing);
  if (!listed_) listed().push_back(this);
  listed_ = true;
  owner_ = owner;
  oldest_ = oldest;
  newest_ = newest;
}

void LiveRuns::none() {
  if (!listed_) return;
  const std::lock_guard<std::mutex> lock(g_listing);
  listed().erase(std::find(listed().begin(), listed().end(), this));
  listed_ = false;
}

Needed LiveRuns::of(Owner owner) {
  const std::lock_guard<std::mutex> lock(g_listing);
  Needed all;
  for (const LiveRuns* r : listed()) {
    if (r->owner_ != owner) continue;
    all.oldest = all.any ? std::min(all.oldest, r->oldest_) : r->oldest_;
    all.newest = std::max(all.newest, r->newest_);
    all.any = true;
  }
  return all;
}

bool LiveRuns::any(Owner owner, Moment from, Moment until) {
  const std::lock_guard<std::mutex> lock(g_listing);
  for (const LiveRuns* r : listed())
    if (r->owner_ == owner && r->newest_ >= from && r->oldest_ < until) return true;
  return false;
}

// ---- keeping them ----------------------------------------------------------------------------------------------

float* Versions::keep_all(Backend& b, Owner owner, const Needed& needed, Moment moment, std::size_t n) {
  if (!needed.any) return nullptr;
  Version* v = open(b, owner, needed, moment, true);
  if (!v) return nullptr;
  try {
    if (v->numbers.size() != n) v->numbers.resize(n);
    return v->numbers.overwrite(b);
  } catch (...) {
    all_.pop_back();  // without memory it is none
    throw;
  }
}

float* Versions::keep_rows(Backend& b, Owner owner, const Needed& needed, Moment moment, const u32* rows, std::size_t n,
                           std::size_t row_size) {
  if (!needed.any) return nullptr;
  Version* v = open(b, owner, needed, moment, false);
  return v ? add_rows(b, *v, rows, n, row_size) : nullptr;
}

// Where the numbers of n rows more go. Without memory for them the version stays what it is.
float* Versions::add_rows(Backend& b, Version& v, const u32* rows, std::size_t n, std::size_t row_size) {
  const std::size_t rows_before = v.rows.size(), before = v.numbers.size();
  v.rows.append(rows, n);
  try {
    v.numbers.grow(b, before + n * row_size, false);
  } catch (...) {
    v.rows.resize(rows_before);
    throw;
  }
  return v.numbers.write(b) + before;
}

void Versions::keep_owing(Backend& b, u32 row, float* numbers, std::size_t row_size) {
  for (std::size_t k = all_.size(); k-- > 0;) {
    Version& v = *all_[k];
    if (v.whole || v.lost || newest(v.owner) != &v) continue;
    const Needed needed = LiveRuns::of(v.owner);
    if (!needed.any || needed.oldest >= v.until) continue;
    float* const to = add_rows(b, v, &row, 1, row_size);
    b.copy_rows(1, row_size, Rows{numbers, 0, nullptr}, Rows{to, 0, nullptr});
  }
}

// The version that takes what is changed now; null where all is there: nothing has run since all of it was kept.
Version* Versions::open(Backend& b, Owner owner, const Needed& needed, Moment moment, bool whole) {
  // The usual case: the one of before the last update, which nobody needs any more.
  if (whole && all_.size() == 1 && all_[0]->whole && all_[0]->owner == owner && needed.oldest >= all_[0]->until) {
    all_[0]->until = moment;
    all_[0]->lost = all_[0]->exchanged = false;
    return all_[0].get();
  }
  drop_dead(owner, needed);
  fold(b, owner);
  if (Version* last = newest(owner); last && needed.newest < last->until && !last->lost) {
    if (last->whole) return nullptr;
    if (!whole) {
      drop_repeated(b, *last);
      return last;
    }
  }
  if (too_many(owner)) drop_oldest(owner);
  if (spare_.empty()) spare_.push_back(std::make_unique<Version>());
  all_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  Version& v = *all_.back();
  v.until = moment;
  v.owner = owner;
  v.whole = whole;
  v.lost = v.exchanged = false;
  v.rows.clear();
  v.once = 0;
  v.numbers.clear();
  return &v;
}

// Versions that no run reads, since none that is there ran between the one before and this one, are joined to that one:
// whoever goes on training beside an old graph keeps one copy, not one for each update.
void Versions::fold(Backend& b, Owner owner) {
  Version* older = nullptr;
  for (std::size_t k = 0; k < all_.size(); ++k) {
    Version& v = *all_[k];
    if (v.owner != owner) continue;
    if (!older || v.lost || LiveRuns::any(owner, older->until, v.until)) {
      older = &v;
      continue;
    }
    if (!older->lost) take_over(b, *older, v);
    spare(k--);
  }
}

// `older` becomes both versions in one: where both have a number, its own, which is the older one.
void Versions::take_over(Backend& b, Version& older, Version& v) {
  if (older.whole || (!v.whole && v.rows.empty())) return;
  const std::size_t n = older.numbers.size(), more = v.numbers.size();
  if (!v.whole) {
    float* const to = add_rows(b, older, v.rows.data(), v.rows.size(), more / v.rows.size());
    b.copy_rows(1, more, Rows{v.numbers.read(b), 0, nullptr}, Rows{to, 0, nullptr});
    return drop_repeated(b, older);
  }
  if (!older.rows.empty()) exchange_numbers(b, older, v.numbers.write(b), n / older.rows.size(), true);
  older.exchanged = false;
  older.whole = true;
  older.rows.clear();
  std::swap(older.numbers, v.numbers);
}

// Of rows that occur again the first is kept. They are looked for when there are twice as many as the last time.
void Versions::drop_repeated(Backend& b, Version& v) {
  constexpr std::size_t kFew = 64;
  const std::size_t n = v.rows.size();
  if (n < 2 * v.once + kFew) return;
  const std::size_t row_size = v.numbers.size() / n;
  std::vector<std::size_t> first(n);
  for (std::size_t k = 0; k < n; ++k) first[k] = k;
  auto row = [&](std::size_t k) { return v.rows[k]; };
  std::stable_sort(first.begin(), first.end(), [&](std::size_t a, std::size_t c) { return row(a) < row(c); });
  first.erase(std::unique(first.begin(), first.end(), [&](std::size_t a, std::size_t c) { return row(a) == row(c); }),
              first.end());
  v.once = first.size();
  if (v.once == n) return;
  std::sort(first.begin(), first.end());
  Store numbers;
  numbers.resize(v.once * row_size);
  float *const from = v.numbers.read(b), *const to = numbers.overwrite(b);
  std::vector<float*> kept;
  for (std::size_t k = 0; k < v.once; ++k) kept.push_back(from + first[k] * row_size);
  for (std::size_t k = 0; k < v.once; ++k) v.rows[k] = v.rows[first[k]];
  v.rows.resize(v.once);
  b.copy_rows(v.once, row_size, Rows{nullptr, 0, kept.data()},
              Rows{to, static_cast<std::ptrdiff_t>(row_size), nullptr});
  std::swap(v.numbers, numbers);
}

// Version k goes; its memory is for the next.
void Versions::spare(std::size_t k) {
  if (spare_.empty()) spare_.push_back(std::move(all_[k]));
  all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(k));
}

bool Versions::too_many(Owner owner) const {
  std::size_t kept = 0, floats = 0;
  for (const auto& v : all_) {
    if (v->owner != owner || v->lost) continue;
    ++kept;
    floats += v->numbers.size();
  }
  return kept >= kAlways && floats > kFloats;
}

Version* Versions::newest(Owner owner) {
  for (std::size_t k = all_.size(); k-- > 0;)
    if (all_[k]->owner == owner) return all_[k].get();
  return nullptr;
}

// What no run needs any more gives its memory to the next.
void Versions::drop_dead(Owner owner, const Needed& needed) {
  std::size_t left = 0;
  for (std::size_t k = 0; k < all_.size(); ++k) {
    const Needed n = all_[k]->owner == owner ? needed : LiveRuns::of(all_[k]->owner);
    if (n.any && n.oldest < all_[k]->until) {
      std::swap(all_[left++], all_[k]);
    } else if (spare_.empty()) {
      spare_.push_back(std::move(all_[k]));
    }
  }
  all_.resize(left);
}

void Versions::drop_oldest(Owner owner) {
  Version* before = nullptr;  // what was lost already
  for (auto& v : all_) {
    if (v->owner != owner) continue;
    if (v->lost) {
      before = v.get();
      continue;
    }
    if (before) {
      before->until = v->until;
      spare_.push_back(std::move(v));
      all_.erase(std::find(all_.begin(), all_.end(), nullptr));
    } else {
      v->lost = true;
      v->rows.release();
      v->numbers.release();
    }
    return;
  }
}

void Versions::release_dead() {
  drop_dead(nullptr, {});
  spare_.clear();
}

// ---- using them ------------------------------------------------------------------------------------------------

bool Versions::lost(Owner owner, Moment ran_at) const {
  for (const auto& v : all_)
    if (v->owner == owner && v->lost && ran_at < v->until) return true;
  return false;
}

void Versions::exchange_numbers(Backend& b, Version& v, float* numbers, std::size_t row_size, bool newest_first) {
  float* kept = v.numbers.write(b);
  const std::size_t n = v.whole ? 0 : v.rows.size();
  listed_.clear();
  for (std::size_t k = 0; k < n; ++k) listed_.push_back(numbers + v.rows[newest_first ? n - 1 - k : k] * row_size);
  v.exchanged = !v.exchanged;
  if (v.whole) return b.swap_rows(1, v.numbers.size(), Rows{kept, 0, nullptr}, Rows{numbers, 0, nullptr});
  if (n == 0) return;
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(row_size);
  const Rows rows = newest_first ? Rows{kept + (n - 1) * row_size, -size, nullptr} : Rows{kept, size, nullptr};
  b.swap_rows(n, row_size, rows, Rows{nullptr, 0, listed_.data()});
}

bool Versions::exchange(Backend& b, Owner owner, Moment ran_at, float* numbers, std::size_t row_size) {
  bool any = false;
  for (std::size_t k = all_.size(); k-- > 0;) {
    Version& v = *all_[k];
    if (v.owner != owner || v.lost || v.exchanged || v.until <= ran_at) continue;
    exchange_numbers(b, v, numbers, row_size, true);
    any = true;
  }
  return any;
}

bool Versions::present(Backend& b, float* numbers, std::size_t row_size) {
  bool any = false;
  for (auto& v : all_) {
    if (!v->exchanged) continue;
    exchange_numbers(b, *v, numbers, row_size, false);
    any = true;
  }
  return any;
}

}  // namespace dnl
