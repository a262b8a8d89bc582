// Numbers that do not mix: the number of an object is no number of an extent, though both are integers.
//
// A Number is made explicitly (`ObjectId(3)`), compared and counted up, and gives its integer only when asked
// (`value()`), so that each place where it becomes something else can be seen. It is as large as its integer
// and trivially copyable: it may stand in shared memory. An Indexed is a vector that only its own kind of
// number opens. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice {

template <typename Tag, typename T>
class Number {
  static_assert(std::is_unsigned_v<T>);

 public:
  using Value = T;

  constexpr Number() = default;
  constexpr explicit Number(T value) : value_(value) {}

  constexpr T value() const { return value_; }
  constexpr auto operator<=>(const Number&) const = default;
  constexpr Number& operator++() {
    ++value_;
    return *this;
  }
  constexpr Number operator++(int) { return Number(value_++); }
  // The number that lies `distance` further on.
  constexpr Number plus(T distance) const { return Number(static_cast<T>(value_ + distance)); }

 private:
  T value_ = 0;
};

// A vector whose places are numbered by `Id`.
template <typename Id, typename T>
class Indexed {
 public:
  Indexed() = default;
  explicit Indexed(size_t size) : items_(size) {}
  Indexed(size_t size, const T& value) : items_(size, value) {}
  Indexed(std::initializer_list<T> items) : items_(items) {}

  decltype(auto) operator[](Id id) {
    DCHECK(id.value() < items_.size(), "a number of this vector");
    return items_[id.value()];
  }
  decltype(auto) operator[](Id id) const {
    DCHECK(id.value() < items_.size(), "a number of this vector");
    return items_[id.value()];
  }
  bool contains(Id id) const { return id.value() < items_.size(); }
  Id push_back(T item) {
    items_.push_back(std::move(item));
    return Id(static_cast<typename Id::Value>(items_.size() - 1));
  }
  void pop_back() { items_.pop_back(); }
  void clear() { items_.clear(); }
  void assign(size_t size, const T& value) { items_.assign(size, value); }
  void resize(size_t size) { items_.resize(size); }
  void reserve(size_t size) { items_.reserve(size); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  // One past the last number.
  Id end_id() const { return Id(static_cast<typename Id::Value>(items_.size())); }
  decltype(auto) back() { return items_.back(); }
  decltype(auto) back() const { return items_.back(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool operator==(const Indexed&) const = default;

 private:
  std::vector<T> items_;
};

// What control and dataplane both count. A flow's and a session's slots are places on the board; a lane is
// one flow of a session, by its place in the handshake; an object is what is moved as one stream of bytes, by
// its place in the session; an extent is a piece of an object, by its place in it.
using FlowSlotId = Number<struct FlowSlotTag, uint32_t>;
using SessionSlotId = Number<struct SessionSlotTag, uint32_t>;
using LaneId = Number<struct LaneTag, uint32_t>;
using ObjectId = Number<struct ObjectTag, uint32_t>;
using ExtentId = Number<struct ExtentTag, uint64_t>;

}  // namespace sluice

template <typename Tag, typename T>
struct std::hash<sluice::Number<Tag, T>> {
  size_t operator()(const sluice::Number<Tag, T>& number) const { return std::hash<T>()(number.value()); }
};
