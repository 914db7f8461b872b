#include "graph/store.h"

namespace dnl {

void Store::release_device() {
  if (device_) backend_->memory().free(device_);
  device_ = nullptr;
  room_ = 0;
  backend_ = nullptr;
}

void Store::release() {
  release_device();
  outer_.reset();
  host_.release();
  size_ = 0;
  newest_ = kHost;
}

// The first time that this backend asks, or after there were more numbers.
float* Store::place(Backend& b) {
  if (b.host_memory) {
    host_.resize(size_);
    return host_.data();
  }
  if (backend_ == &b && size_ <= room_) return device_;
  if (newest_ == kDevice) move_to(host_backend());
  release_device();
  device_ = static_cast<float*>(b.memory().alloc((size_ ? size_ : 1) * sizeof(float)));
  room_ = size_;
  backend_ = &b;
  newest_ = kHost;
  return device_;
}

void Store::move_to(Backend& b) {
  if (b.host_memory) {
    host_.resize(size_);
    if (size_) backend_->download(size_, device_, host_.data());
  } else {
    float* to = place(b);
    if (newest_ != kHost) return;
    host_.resize(size_);
    if (size_) b.upload(size_, host_.data(), to);
  }
  newest_ = kBoth;
}

void Store::form_outer() {
  outer_->there = false;
  outer_->add_to(host_to_write());
}

void Store::resize(std::size_t n) {
  drop_outer();
  size_ = n;
  host_.clear();
  newest_ = kHost;
}

void Store::assign_zeros(std::size_t n) {
  drop_outer();
  host_.assign(n, 0.f);
  size_ = n;
  newest_ = kHost;
}

void Store::grow(Backend& b, std::size_t n, bool zero) {
  const std::size_t before = size_;
  if (n == before) return;
  if (b.host_memory) {
    read(b);
    host_.resize(before);
    float* more = host_.extend(n - before);
    if (zero) b.fill(n - before, 0.f, more);
    size_ = n;
    newest_ = kHost;
    return;
  }
  if (before) read(b);
  if (backend_ != &b || n > room_) {
    if (before == 0) release_device();
    const std::size_t room = n > 2 * room_ ? n : 2 * room_;
    float* fresh = static_cast<float*>(b.memory().alloc(room * sizeof(float)));
    if (before) b.copy_rows(1, before, Rows{device_, 0, nullptr}, Rows{fresh, 0, nullptr});
    release_device();
    device_ = fresh;
    room_ = room;
    backend_ = &b;
  }
  size_ = n;
  if (zero) b.fill(n - before, 0.f, device_ + before);
  newest_ = kDevice;
}

void Store::zero() {
  if (outer()) return drop_outer();  // they are
  if (backend_ && newest_ != kHost) {
    backend_->fill(size_, 0.f, device_);
    newest_ = kDevice;
    return;
  }
  host_.resize(size_);
  if (size_) std::memset(host_.data(), 0, size_ * sizeof(float));
  newest_ = kHost;
}

}  // namespace dnl
