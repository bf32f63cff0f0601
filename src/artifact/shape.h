// SPDX-License-Identifier: Apache-2.0
// How long is a tensor along each of its axes? A short list of dimensions, outermost first, that needs no
// allocation up to rank 2, as matrices have: folders of 100,000 tensors are opened in milliseconds. A value;
// copying it copies the list.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace plimsoll::artifact {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dimensions)
      : Shape(std::span(dimensions.begin(), dimensions.size())) {}
  explicit Shape(std::span<const std::int64_t> dimensions) : size_(dimensions.size()) {
    if (is_long()) place_.longer = new std::int64_t[room_for(size_)];
    std::copy(dimensions.begin(), dimensions.end(), data());
  }
  Shape(const Shape& other) : place_(other.place_), size_(other.size_) {
    if (!is_long()) return;
    place_.longer = new std::int64_t[room_for(size_)];
    std::copy(other.begin(), other.end(), place_.longer);
  }
  Shape(Shape&& other) noexcept : place_(other.place_), size_(std::exchange(other.size_, 0)) {}
  Shape& operator=(const Shape& other) {
    if (is_long() || other.is_long())
      *this = Shape(other);
    else
      place_ = other.place_, size_ = other.size_;
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Shape() {
    if (is_long()) delete[] place_.longer;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::int64_t* begin() const { return is_long() ? place_.longer : place_.here; }
  const std::int64_t* end() const { return begin() + size_; }
  std::int64_t operator[](std::size_t axis) const { return begin()[axis]; }
  std::int64_t front() const { return *begin(); }
  std::int64_t back() const { return end()[-1]; }

  void push_back(std::int64_t dimension) {
    if (size_ >= kHere && size_ == (is_long() ? room_for(size_) : kHere)) {
      auto* longer = new std::int64_t[room_for(size_ + 1)];
      std::copy(begin(), end(), longer);
      if (is_long()) delete[] place_.longer;
      place_.longer = longer;
    }
    ++size_;
    data()[size_ - 1] = dimension;
  }
  void reverse() { std::reverse(data(), data() + size_); }

  /// With other shapes and with vectors of dimensions.
  friend bool operator==(const Shape& a, std::span<const std::int64_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Shape& a, const Shape& b) { return a == std::span<const std::int64_t>(b); }

 private:
  static constexpr std::size_t kHere = 2;

  union Place {
    std::int64_t here[kHere] = {};
    std::int64_t* longer;  // owned; of room_for(size_) dimensions
  };

  static std::size_t room_for(std::size_t size) { return std::bit_ceil(size); }
  bool is_long() const { return size_ > kHere; }
  std::int64_t* data() { return is_long() ? place_.longer : place_.here; }

  Place place_;
  std::size_t size_ = 0;
};

}  // namespace plimsoll::artifact
