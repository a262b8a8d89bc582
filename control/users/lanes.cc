// SPDX-License-Identifier: Apache-2.0
#include "control/users/lanes.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "control/users/asking.h"
#include "control/users/greeting.h"

namespace sluice::users {
namespace {

constexpr size_t kLanesMax = 16;         // as many as there are threads for packs of an export
constexpr int kLaneAttempts = 2;         // a process that had nothing to do for a while has ended
constexpr size_t kForgottenSaid = 1000;  // that are said at a time

}  // namespace

void Lane::forget(uint64_t life, uint64_t number) {
  const std::scoped_lock lock(mutex_);
  if (life == life_) forgotten_.push_back(number);
}

Error Lanes::lost(int reason) const { return no_helper(socket_, reason); }

Result<Channel> Lanes::connect() const {
  Result<Channel> greeted = greet(socket_, uid_, lifeline_->watched());
  if (greeted) greeted->take_bulk();
  return greeted;
}

uint64_t Lanes::next_number() {
  const std::scoped_lock lock(mutex_);
  return ++numbers_;
}

std::shared_ptr<Lane> Lanes::take() {
  std::shared_ptr<Lane> lane;
  {
    const std::scoped_lock lock(mutex_);
    for (const std::shared_ptr<Lane>& each : lanes_) {
      if (each->busy_.try_lock()) return each;
    }
    if (lanes_.size() < kLanesMax) {
      lane = lanes_.emplace_back(std::make_shared<Lane>());
      lane->busy_.lock();
      return lane;
    }
    lane = lanes_[turn_++ % lanes_.size()];
  }
  lane->busy_.lock();
  return lane;
}

// Of those that have a process; nothing: there is none.
std::shared_ptr<Lane> Lanes::take_connected() {
  std::vector<std::shared_ptr<Lane>> all;
  {
    const std::scoped_lock lock(mutex_);
    all = lanes_;
  }
  for (const std::shared_ptr<Lane>& each : all) {
    each->busy_.lock();
    if (each->channel_) return each;
    each->busy_.unlock();
  }
  return nullptr;
}

Status Lanes::connect(Lane& lane) const {
  if (lane.channel_) return {};
  Result<Channel> connected = connect();
  if (!connected) return connected.error();
  lane.channel_.emplace(std::move(*connected));
  static std::atomic<uint64_t> lives = 0;
  const std::scoped_lock lock(lane.mutex_);
  lane.life_ = ++lives;
  lane.forgotten_.clear();
  return {};
}

int Lanes::exchange(Lane& lane, const Call& call, int fd, Lane::Heard* heard) {
  Call said = call;
  {
    const std::scoped_lock lock(lane.mutex_);
    const size_t count = std::min(lane.forgotten_.size(), kForgottenSaid);
    said.tree.forgotten.assign(lane.forgotten_.end() - static_cast<std::ptrdiff_t>(count),
                               lane.forgotten_.end());
    lane.forgotten_.resize(lane.forgotten_.size() - count);
  }
  std::vector<int> beside;
  if (fd >= 0) beside.push_back(fd);
  Parcel parcel;
  int reason = lane.channel_->send(encode(said), beside, kCallLimit);
  if (reason == 0) reason = lane.channel_->receive(&parcel, kCallLimit);
  std::optional<Answer> answer = reason == 0 ? decode_answer(parcel.bytes) : std::nullopt;
  if (reason == 0 && !answer) reason = EPROTO;
  if (reason != 0) {
    lane.channel_.reset();
    return reason;
  }
  heard->answer = std::move(*answer);
  heard->descriptors = std::move(parcel.descriptors);
  return 0;
}

Status Lanes::ask(const Call& call, Lane::Heard* heard, int fd) {
  std::shared_ptr<Lane> lane = take();
  if (Status status = connect(*lane); !status) {
    lane->busy_.unlock();
    if (status.error().code != ErrorCode::kResources) return status;
    // sluice-users has as many processes as it may: one of those that there are has to do it.
    lane = take_connected();
    if (!lane) return status;
  }
  const std::unique_lock busy(lane->busy_, std::adopt_lock);
  int reason = 0;
  for (int i = 0; i < kLaneAttempts; ++i) {
    if (Status status = connect(*lane); !status) return status;
    reason = exchange(*lane, call, fd, heard);
    if (reason == EPIPE) continue;
    if (reason != 0) break;
    heard->by = lane;
    heard->life = lane->life_;
    return heard->answer.status();
  }
  return lost(reason);
}

std::optional<Lane::Heard> Lanes::ask_same(Lane& lane, uint64_t life, Call call) {
  const std::scoped_lock busy(lane.busy_);
  if (!lane.channel_ || lane.life_ != life) return std::nullopt;
  Lane::Heard heard;
  if (exchange(lane, call, -1, &heard) != 0) return std::nullopt;
  return heard;
}

}  // namespace sluice::users
