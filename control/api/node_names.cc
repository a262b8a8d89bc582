// SPDX-License-Identifier: Apache-2.0
#include "control/api/node_names.h"

#include <variant>

#include "control/async/clock.h"
#include "control/audit/lines.h"
#include "control/exports/listing.h"

namespace sluice::service {
namespace {

class Question final : public NamesQuestion {
 public:
  explicit Question(std::shared_ptr<node::NamesAsker> asker) : asker_(std::move(asker)) {}

  asio::awaitable<Result<Answer>> next() override {
    const std::shared_ptr<node::NamesAsker> asker = asker_;
    Result<node::NamesAnswer> answer = co_await asker->next();
    if (!answer) co_return answer.error();
    co_return Answer{.page = std::move(answer->page), .done = std::move(answer->done)};
  }

 private:
  const std::shared_ptr<node::NamesAsker> asker_;
};

class List final : public OwnNames {
 public:
  explicit List(exports::Abandoned abandoned) { pulse_.abandoned = std::move(abandoned); }
  Status open(const exports::Exports& exports, const names::List& asked, exports::Asker asker) {
    Result<std::unique_ptr<exports::Listing>> listing = exports.list(asked, pulse_, asker);
    if (!listing) return listing.error();
    listing_ = std::move(*listing);
    return {};
  }
  Result<names::Page> next() override { return listing_->next(); }

 private:
  exports::Pulse pulse_;
  std::unique_ptr<exports::Listing> listing_;
};

class ListOfUser final : public OwnNames {
 public:
  explicit ListOfUser(std::unique_ptr<exports::UserNames::List> list) : list_(std::move(list)) {}
  Result<names::Page> next() override { return list_->next(); }

 private:
  const std::unique_ptr<exports::UserNames::List> list_;
};

}  // namespace

NodeNames::NodeNames(node::Manager& manager, std::optional<transfer::User> user)
    : manager_(manager),
      user_(std::move(user)),
      as_user_(user_ ? manager.users().names_of(user_->uid) : nullptr) {}

Result<std::unique_ptr<OwnNames>> NodeNames::list_own(const names::List& asked, const std::string& for_peer,
                                                      exports::Abandoned abandoned) {
  if (as_user_) {
    Result<std::unique_ptr<exports::UserNames::List>> begun =
        as_user_->list(asked, for_peer, std::move(abandoned));
    if (!begun) return begun.error();
    return std::unique_ptr<OwnNames>(std::make_unique<ListOfUser>(std::move(*begun)));
  }
  auto list = std::make_unique<List>(std::move(abandoned));
  const Status status = for_peer.empty()
                            ? list->open(manager_.exports(), asked, exports::Asker::kOperator)
                            : list->open(manager_.exports().for_peer(for_peer), asked, exports::Asker::kPeer);
  if (!status) return status.error();
  return std::unique_ptr<OwnNames>(std::move(list));
}

Result<names::Done> NodeNames::change_own(const names::Request& asked, exports::Pulse& pulse) {
  Result<names::Done> done = change(asked, pulse);
  manager_.audit().append(audit::names_changed("", asked, done, async::unix_ns(), user_));
  return done;
}

Result<names::Done> NodeNames::change(const names::Request& asked, exports::Pulse& pulse) {
  if (as_user_) return as_user_->change(asked, "", pulse);
  return manager_.exports().change(asked, pulse, exports::Asker::kOperator);
}

asio::awaitable<Result<std::shared_ptr<NamesQuestion>>> NodeNames::ask(std::string peer,
                                                                       names::Request request) {
  Result<std::shared_ptr<node::NamesAsker>> asker =
      co_await manager_.questions().ask(std::move(peer), std::move(request), user_);
  if (!asker) co_return asker.error();
  co_return std::shared_ptr<NamesQuestion>(std::make_shared<Question>(std::move(*asker)));
}

}  // namespace sluice::service
