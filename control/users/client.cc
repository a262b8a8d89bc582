// SPDX-License-Identifier: Apache-2.0
#include "control/users/client.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "control/users/asking.h"
#include "control/users/lifeline.h"

namespace sluice::users {
namespace {

constexpr std::chrono::seconds kHelloLimit{20};  // who is he? A directory of users may be slow

}  // namespace

class Client::Link final : public Asking {
 public:
  Link(std::filesystem::path socket, uint32_t uid, std::shared_ptr<Lifeline> lifeline)
      : Asking(uid), socket_(std::move(socket)), lifeline_(std::move(lifeline)) {}

  std::string key() const override { return "user " + std::to_string(uid()); }

  Status there() override {
    const std::scoped_lock lock(mutex_);
    // What stands may have gone, or the user may have been put out of the group: a new one is judged anew.
    channel_.reset();
    return connect();
  }

 private:
  Status connect() override {
    UniqueFd socket = connect_to(socket_);
    if (!socket) return lost(errno);
    channel_.emplace(std::move(socket));
    channel_->give_up_with(lifeline_->watched());
    Heard heard;
    const int reason = exchange(hello(uid()), -1, kHelloLimit, &heard);
    Status status = reason == 0 ? heard.answer.status() : Status(lost(reason));
    if (!status) channel_.reset();
    return status;
  }

  Error lost(int reason) const override {
    return {ErrorCode::kDaemonNotRunning,
            "sluice-users, which opens files as the users of this host, does not "
            "answer at " +
                socket_.string() + " (" + std::strerror(reason) + "): start it, or see its log"};
  }

  const std::filesystem::path socket_;
  const std::shared_ptr<Lifeline> lifeline_;
};

Client::Client(std::filesystem::path socket)
    : socket_(std::move(socket)), lifeline_(std::make_shared<Lifeline>()) {}

Client::~Client() = default;

void Client::give_up() const { lifeline_->cut(); }

std::shared_ptr<exports::UserFiles> Client::of(uint32_t uid) const {
  const std::scoped_lock lock(mutex_);
  std::erase_if(links_, [](const auto& one) { return one.second.expired(); });
  std::weak_ptr<Link>& known = links_[uid];
  std::shared_ptr<Link> link = known.lock();
  if (!link) {
    link = std::make_shared<Link>(socket_, uid, lifeline_);
    known = link;
  }
  return link;
}

}  // namespace sluice::users
