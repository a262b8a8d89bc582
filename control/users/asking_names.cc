// SPDX-License-Identifier: Apache-2.0
#include "control/users/asking_names.h"

#include <cerrno>
#include <chrono>
#include <optional>
#include <variant>

#include "control/names/list_check.h"
#include "control/users/asking.h"
#include "control/users/greeting.h"

namespace sluice::users {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{200};  // how often whoever waits looks whether it is still wanted

Error wrong_names() {
  return {ErrorCode::kInternal, "sluice-users gave an answer about names that makes no sense"};
}

Error unwanted() { return {ErrorCode::kCancelled, "nobody waits for it any more"}; }

// However long it takes: 0, or an errno; ETIMEDOUT: it was abandoned.
int receive(Channel& channel, Parcel* parcel, const exports::Abandoned& abandoned) {
  for (;;) {
    const int reason = channel.receive(parcel, kLook);
    if (reason != ETIMEDOUT || (abandoned && abandoned())) return reason;
  }
}

Result<names::Word> word_in(const Parcel& parcel) {
  std::optional<Answer> answer = decode_answer(parcel.bytes);
  if (!answer) return wrong_names();
  if (!answer->status()) return answer->error;
  if (!answer->names) return wrong_names();
  return std::move(*answer->names);
}

}  // namespace

// A list, behind a connection that ends with it.
class AskingNames::Pages final : public exports::UserNames::List {
 public:
  Pages(Channel channel, std::filesystem::path socket, std::shared_ptr<Lifeline> lifeline,
        const names::List& asked, exports::Abandoned abandoned)
      : channel_(std::move(channel)),
        socket_(std::move(socket)),
        lifeline_(std::move(lifeline)),
        asked_(asked),
        abandoned_(std::move(abandoned)),
        check_(asked) {}

  Status open(const std::string& for_peer) {
    Call call{.kind = Kind::kNames, .file = {}, .names = names::Request(asked_)};
    call.file.peer = for_peer;
    Result<names::Page> page = ask(call);
    if (!page) return page.error();
    first_ = std::move(*page);
    return {};
  }

  Result<names::Page> next() override {
    if (first_) return std::exchange(first_, std::nullopt).value();
    if (complete_) return names::Page{};
    return ask({.kind = Kind::kMore, .file = {}});
  }

 private:
  Result<names::Page> ask(const Call& call) {
    Parcel parcel;
    int reason = channel_.send(encode(call), {}, kCallLimit);
    // What a file holds may take long to read.
    if (reason == 0) reason = receive(channel_, &parcel, abandoned_);
    if (reason == ETIMEDOUT) return unwanted();
    if (reason != 0) return no_helper(socket_, reason);
    Result<names::Word> word = word_in(parcel);
    if (!word) return word.error();
    if (const auto* const done = std::get_if<names::Done>(&*word)) {
      complete_ = true;
      if (const Status status = check_.end(*done); !status) return status.error();
      return names::Page{};
    }
    auto* const page = std::get_if<names::Page>(&*word);
    if (page == nullptr) return wrong_names();
    if (const Status status = check_.take(*page); !status) return status.error();
    (void)check_.used();
    return std::move(*page);
  }

  Channel channel_;
  const std::filesystem::path socket_;
  const std::shared_ptr<Lifeline> lifeline_;
  const names::List asked_;
  const exports::Abandoned abandoned_;
  names::ListCheck check_;
  std::optional<names::Page> first_;
  bool complete_ = false;
};

Result<std::unique_ptr<exports::UserNames::List>> AskingNames::list(const names::List& asked,
                                                                    const std::string& for_peer,
                                                                    exports::Abandoned abandoned) {
  names::List by_pages = asked;
  by_pages.pages = names::kPagesAhead;  // ListCheck's bound; here each page is asked for
  Result<Channel> channel = greet(socket_, uid_, lifeline_->watched());
  if (!channel) return channel.error();
  auto pages =
      std::make_unique<Pages>(std::move(*channel), socket_, lifeline_, by_pages, std::move(abandoned));
  if (const Status status = pages->open(for_peer); !status) return status.error();
  return std::unique_ptr<List>(std::move(pages));
}

// A tree may take as long as it takes to remove; so this waits as long as somebody wants it. Who hangs up
// stops it.
Result<names::Done> AskingNames::change(const names::Request& asked, const std::string& for_peer,
                                        exports::Pulse& pulse) {
  Result<Channel> channel = greet(socket_, uid_, lifeline_->watched());
  if (!channel) return channel.error();
  Parcel parcel;
  Call call{.kind = Kind::kNames, .file = {}, .names = asked};
  call.file.peer = for_peer;
  int reason = channel->send(encode(call), {}, kCallLimit);
  if (reason == 0) reason = receive(*channel, &parcel, [&pulse] { return !pulse.step(); });
  if (reason == ETIMEDOUT) return unwanted();
  if (reason != 0) return no_helper(socket_, reason);
  Result<names::Word> word = word_in(parcel);
  if (!word) return word.error();
  if (auto* const done = std::get_if<names::Done>(&*word)) return std::move(*done);
  return wrong_names();
}

}  // namespace sluice::users
