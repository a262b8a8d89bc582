// SPDX-License-Identifier: Apache-2.0
#include "control/users/asking_trees.h"

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "control/users/asking.h"
#include "dataplane/base/progress.h"

namespace sluice::users {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTreeLook{
    200};  // how often whoever waits looks whether it is still wanted
constexpr int kCommitAttempts = 3;

Error wrong_trees() {
  return {ErrorCode::kInternal, "sluice-users gave an answer about a directory that makes no sense"};
}

Call call_of(Kind kind, const std::string& peer) {
  Call call{.kind = kind, .file = {}};
  call.file.peer = peer;
  return call;
}

Call call_of(Kind kind, const std::string& peer, const catalog::File& pack) {
  Call call = call_of(kind, peer);
  call.tree.pack = pack;
  return call;
}

// Answers until one says that it is the last. The process says every now and then that it goes on; who hangs
// up stops it.
Status hear_all(const Lanes& lanes, const Call& call, const std::function<Status()>& go_on,
                const std::function<Status(Answer)>& take) {
  Result<Channel> channel = lanes.connect();
  if (!channel) return channel.error();
  int reason = channel->send(encode(call), {}, kCallLimit);
  for (auto heard_at = Clock::now(); reason == 0;) {
    Parcel parcel;
    reason = channel->receive(&parcel, kTreeLook);
    if (reason == ETIMEDOUT && Clock::now() - heard_at < kCallLimit) reason = EAGAIN;
    if (Status status = go_on(); !status) return status;
    if (reason == EAGAIN) {
      reason = 0;
      continue;
    }
    if (reason != 0) break;
    heard_at = Clock::now();
    base::note_progress();
    std::optional<Answer> answer = decode_answer(parcel.bytes);
    if (!answer) return wrong_trees();
    if (!answer->status()) return answer->error;
    const bool ended = answer->ended;
    if (Status status = take(std::move(*answer)); !status || ended) return status;
  }
  return lanes.lost(reason);
}

}  // namespace

// A pack that a process of the user has staged.
class AskingTrees::Staged final : public exports::Unpacking {
 public:
  Staged(std::shared_ptr<Lanes> lanes, const std::string& peer, Pack pack, UniqueFd memory)
      : lanes_(std::move(lanes)),
        call_(call_of(Kind::kStagePack, peer, pack.file)),
        memory_(std::move(memory)) {
    call_.tree.staging = std::move(pack.staging);
    call_.tree.expected = std::move(pack.expected);
  }
  ~Staged() override {
    if (lane_) lane_->forget(life_, call_.tree.number);
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;

  Status stage() {
    lane_.reset();
    call_.tree.number = lanes_->next_number();
    Lane::Heard heard;
    if (Status status = lanes_->ask(call_, &heard, memory_.get()); !status) return status;
    lane_ = std::move(heard.by);
    life_ = heard.life;
    return {};
  }

  Status commit() override {
    for (int i = 0; i < kCommitAttempts; ++i) {
      if (!lane_) {
        if (Status status = stage(); !status) return status;
      }
      Call call = call_of(Kind::kNamePack, call_.file.peer);
      call.tree.number = call_.tree.number;
      std::optional<Lane::Heard> heard = lanes_->ask_same(*lane_, life_, std::move(call));
      if (!heard || !heard->answer.found) {  // whoever had it has gone
        lane_.reset();
        continue;
      }
      if (!heard->answer.status()) return heard->answer.error;
      missing_ = std::move(heard->answer.missing);
      digests_ = std::move(heard->answer.digests);
      lane_.reset();
      return {};
    }
    return lanes_->lost(EPIPE);
  }

  const catalog::Shortfall& missing() const override { return missing_; }
  std::vector<digests::Named> digests() const override { return digests_; }

 private:
  const std::shared_ptr<Lanes> lanes_;
  Call call_;
  const UniqueFd memory_;
  std::shared_ptr<Lane> lane_;  // nothing: it is to be staged, or has its names
  uint64_t life_ = 0;
  catalog::Shortfall missing_;
  std::vector<digests::Named> digests_;
};

Result<std::vector<catalog::File>> AskingTrees::list(const std::string& peer, const Wish& wish,
                                                     const Take& take) {
  Call call = call_of(Kind::kList, peer);
  call.tree.wish = wish;
  std::vector<catalog::File> rest;
  const Status listed = hear_all(*lanes_, call, take.go_on, [&](Answer answer) -> Status {
    if (wish.by_parts && !answer.ended)
      return answer.files.empty() ? Status() : take.part(std::move(answer.files));
    std::move(answer.files.begin(), answer.files.end(), std::back_inserter(rest));
    return {};
  });
  if (!listed) return listed.error();
  return rest;
}

Status AskingTrees::preview(const std::string& peer, const Wish& wish, const exports::TakeEntry& take) {
  Call call = call_of(Kind::kPreview, peer);
  call.tree.wish = wish;
  return hear_all(
      *lanes_, call, [] { return Status(); },
      [&](Answer answer) -> Status {
        for (catalog::Entry& entry : answer.entries) {
          if (Status status = take(std::move(entry)); !status) return status;
        }
        return {};
      });
}

Result<UniqueFd> AskingTrees::fill_pack(const std::string& peer, const catalog::File& pack) {
  Lane::Heard heard;
  if (Status status = lanes_->ask(call_of(Kind::kFillPack, peer, pack), &heard); !status)
    return status.error();
  if (heard.descriptors.size() != 1) return wrong_trees();
  return std::move(heard.descriptors.front());
}

std::vector<catalog::FailedName> AskingTrees::names_of_changed(const std::string& peer,
                                                               const catalog::File& pack) {
  Lane::Heard heard;
  const Status status = lanes_->ask(call_of(Kind::kLookAtPack, peer, pack), &heard);
  return status ? std::move(heard.answer.missing.names) : std::vector<catalog::FailedName>();
}

Result<std::string> AskingTrees::open_destination(const std::string& peer, const std::string& path,
                                                  const catalog::Keep& keep) {
  Call call = call_of(Kind::kOpenTree, peer);
  call.file.spec.path = path;
  call.file.spec.keep = keep;
  Lane::Heard heard;
  if (Status status = lanes_->ask(call, &heard); !status) return status.error();
  return std::move(heard.answer.name_path);
}

Status AskingTrees::make_missing(const std::string& peer, const std::string& destination, bool is_directory,
                                 const catalog::Keep& keep) {
  Call call = call_of(Kind::kMakeMissing, peer);
  call.file.spec.path = destination;
  call.file.spec.is_directory = is_directory;
  call.file.spec.keep = keep;
  Lane::Heard heard;
  return lanes_->ask(call, &heard);
}

Result<std::string> AskingTrees::make_directories(const std::string& peer, const std::string& destination,
                                                  const std::string& relative, catalog::Failure* why) {
  Call call = call_of(Kind::kMakeDirectories, peer);
  call.file.spec.path = destination;
  call.file.spec.name = relative;
  Lane::Heard heard;
  const Status status = lanes_->ask(call, &heard);
  if (why != nullptr && heard.answer.failure != catalog::Failure::kNone) *why = heard.answer.failure;
  if (!status) return status.error();
  return std::move(heard.answer.name_path);
}

// Read-only: what came for this user stays what came, whoever has got hold of that process.
Result<std::shared_ptr<exports::Unpacking>> AskingTrees::stage(const std::string& peer, Pack pack) {
  const std::string again = "/proc/self/fd/" + std::to_string(pack.memory_fd);
  UniqueFd memory(::open(again.c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory)
    return Error{ErrorCode::kResources, "cannot hand over a pack of small files: " +
                                            std::string(std::strerror(errno)) + "; is /proc mounted?"};
  const auto staged = std::make_shared<Staged>(lanes_, peer, std::move(pack), std::move(memory));
  if (Status status = staged->stage(); !status) return status.error();
  return std::shared_ptr<exports::Unpacking>(staged);
}

Status AskingTrees::remove_staging(const std::string& peer, const catalog::File& pack,
                                   const std::string& staging) {
  Call call = call_of(Kind::kRemoveStaging, peer, pack);
  call.tree.staging = staging;
  Lane::Heard heard;
  return lanes_->ask(call, &heard);
}

}  // namespace sluice::users
