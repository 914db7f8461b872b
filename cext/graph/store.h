// Store: numbers that outlive graphs, in the memory of whichever backend works with them.
//
// The host has a mirror; a backend with memory of its own has a copy there, made when it is first asked for. The store
// knows who has the newest numbers and moves them only then: for a backend whose memory is the host's both are one, and
// nothing is ever moved. Addresses that a backend gets are its own (op/backend.h). Whoever changes numbers holds the
// mutex of the parameter or table, as for all of what lies in them. Zeros on the host may have an outer product beside
// them, which is added to them when somebody reads. Who may include: graph/, exec/, bindings/. Includes: op/backend.h.
#pragma once
#include <memory>
#include <utility>

#include "base/outer_later.h"
#include "op/backend.h"

namespace dnl {

class Store {
 public:
  Store() = default;
  ~Store() { release(); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&& o) noexcept { swap(o); }
  Store& operator=(Store&& o) noexcept {
    swap(o);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Where they lie in the backend's memory, newest or not: for addresses that are followed later. Good until there are
  // more numbers, or another backend with memory of its own asks.
  float* at(Backend& b) {
    if (b.host_memory && host_.size() == size_) return host_.data();
    return place(b);
  }
  // The same, and the newest numbers lie there.
  float* read(Backend& b) {
    if (outer_ && outer_->there) form_outer();
    if (newest_ != kBoth && newest_ != (b.host_memory ? kHost : kDevice)) move_to(b);
    return at(b);
  }
  // The same, and they will be changed there.
  float* write(Backend& b) {
    float* p = read(b);
    wrote(b);
    return p;
  }
  // They will all be overwritten there: nothing is moved.
  float* overwrite(Backend& b) {
    drop_outer();
    float* p = at(b);
    wrote(b);
    return p;
  }
  // The numbers are zero and lie on the host: an outer product may be put here, in their place.
  OuterLater& outer_place() {
    if (!outer_) outer_ = std::make_unique<OuterLater>();
    return *outer_;
  }
  // What was put there and nobody has read; null: nothing.
  const OuterLater* outer() const { return outer_ && outer_->there ? outer_.get() : nullptr; }
  void drop_outer() {
    if (outer_) outer_->there = false;
  }
  // On the host, to be read or changed by it.
  const float* host() { return read(host_backend()); }
  float* host_to_write() { return write(host_backend()); }

  // So many numbers, uninitialised.
  void resize(std::size_t n);
  // n zeros.
  void assign_zeros(std::size_t n);
  // Room for n numbers in all, n not less than there are; the new ones are zero where `zero`, else uninitialised.
  void grow(Backend& b, std::size_t n, bool zero);
  // All are zero, wherever they lie.
  void zero();
  void clear() {
    drop_outer();
    size_ = 0;
    host_.clear();
    newest_ = kHost;
  }
  void release();

 private:
  enum Newest : u8 { kHost, kDevice, kBoth };
  void swap(Store& o) {
    std::swap(host_, o.host_);
    std::swap(size_, o.size_);
    std::swap(device_, o.device_);
    std::swap(room_, o.room_);
    std::swap(backend_, o.backend_);
    std::swap(newest_, o.newest_);
    std::swap(outer_, o.outer_);
  }
  void wrote(const Backend& b) {
    const Newest now = b.host_memory ? kHost : b.computes() ? kDevice : newest_;
    if (newest_ != now) newest_ = now;
  }
  float* place(Backend& b);
  void move_to(Backend& b);
  void form_outer();
  void release_device();

  Vec<float> host_;
  std::size_t size_ = 0;
  float* device_ = nullptr;
  std::size_t room_ = 0;  // numbers for which there is room at device_
  Backend* backend_ = nullptr;
  Newest newest_ = kHost;
  std::unique_ptr<OuterLater> outer_;
};

}  // namespace dnl
