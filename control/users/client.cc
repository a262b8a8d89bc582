// SPDX-License-Identifier: Apache-2.0
#include "control/users/client.h"

#include <utility>

#include "control/users/asking.h"
#include "control/users/asking_names.h"
#include "control/users/asking_trees.h"
#include "control/users/greeting.h"
#include "control/users/lifeline.h"

namespace sluice::users {

class Client::Link final : public Asking {
 public:
  Link(std::filesystem::path socket, uint32_t uid, std::shared_ptr<Lifeline> lifeline)
      : Asking(uid),
        socket_(std::move(socket)),
        lifeline_(std::move(lifeline)),
        trees_(std::make_shared<Lanes>(socket_, uid, lifeline_)) {}

  exports::UserTrees* trees() override { return &trees_; }
  std::string key() const override { return "user " + std::to_string(uid()); }

  Status there() override {
    const std::scoped_lock lock(mutex_);
    // What stands may have gone, or the user may have been put out of the group: a new one is judged anew.
    channel_.reset();
    return connect();
  }

 private:
  Status connect() override {
    Result<Channel> greeted = greet(socket_, uid(), lifeline_->watched());
    if (!greeted) return greeted.error();
    channel_.emplace(std::move(*greeted));
    return {};
  }

  Error lost(int reason) const override { return no_helper(socket_, reason); }

  const std::filesystem::path socket_;
  const std::shared_ptr<Lifeline> lifeline_;
  AskingTrees trees_;
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

std::unique_ptr<exports::UserNames> Client::names_of(uint32_t uid) const {
  return std::make_unique<AskingNames>(socket_, uid, lifeline_);
}

}  // namespace sluice::users
