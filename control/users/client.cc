// SPDX-License-Identifier: Apache-2.0
#include "control/users/client.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "control/users/channel.h"

namespace sluice::users {
namespace {

constexpr std::chrono::seconds kHelloLimit{20};  // who is he? A directory of users may be slow
constexpr int kAttempts = 2;

struct Heard {
  Answer answer;
  std::vector<UniqueFd> descriptors;
};

Error wrong_answer() {
  return {ErrorCode::kInternal, "sluice-users gave an answer that makes no sense; see its log"};
}

}  // namespace

// A pipe, whose end hangs up once nobody wants to wait any more.
struct Client::Lifeline {
  Lifeline() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    watched.reset(ends[0]);
    held.reset(ends[1]);
  }

  UniqueFd watched;
  std::mutex mutex;
  UniqueFd held;
};

class Client::Link final : public exports::UserFiles {
 public:
  Link(std::filesystem::path socket, uint32_t uid, std::shared_ptr<Lifeline> lifeline)
      : socket_(std::move(socket)), uid_(uid), lifeline_(std::move(lifeline)) {}

  uint32_t uid() const override { return uid_; }

  Status there() override {
    const std::scoped_lock lock(mutex_);
    // What stands may have gone, or the user may have been put out of the group: a new one is judged anew.
    channel_.reset();
    return connect();
  }

  Result<UniqueFd> open_source(const std::string& peer, const std::string& path, bool unfinished) override {
    exports::UserFile file;
    file.peer = peer;
    file.spec.path = path;
    Result<Heard> heard = ask(unfinished ? Kind::kOpenUnfinished : Kind::kOpenSource, file);
    if (!heard) return heard.error();
    if (heard->descriptors.size() != 1) return wrong_answer();
    return std::move(heard->descriptors.front());
  }

  Result<Opened> create(const exports::UserFile& file) override {
    Result<Heard> heard = ask(Kind::kCreate, file);
    if (!heard) return heard.error();
    if (heard->descriptors.size() != 2) return wrong_answer();
    return Opened{.fd = std::move(heard->descriptors[0]),
                  .directory = std::move(heard->descriptors[1]),
                  .name_path = std::move(heard->answer.name_path)};
  }

  Result<std::optional<Opened>> reopen(const exports::UserFile& file) override {
    Result<Heard> heard = ask(Kind::kReopen, file);
    if (!heard) return heard.error();
    std::vector<UniqueFd>& got = heard->descriptors;
    if (!heard->answer.found) return std::optional<Opened>();
    if (got.size() != (file.fd >= 0 ? 1U : 2U)) return wrong_answer();
    Opened opened{.fd = {}, .directory = std::move(got.back()), .name_path = file.spec.path};
    if (got.size() == 2) opened.fd = std::move(got.front());
    return std::optional<Opened>(std::move(opened));
  }

  Status finish(const exports::UserFile& file) override { return done(Kind::kFinish, file); }
  Status drop(const exports::UserFile& file) override { return done(Kind::kDrop, file); }

  Committed commit(const exports::UserFile& file) override {
    Result<Heard> heard = ask(Kind::kCommit, file, true);
    if (!heard) return {.status = heard.error(), .named = false};
    return {.status = heard->answer.status(), .named = heard->answer.found};
  }

  Result<bool> is_committed(const exports::UserFile& file) override {
    Result<Heard> heard = ask(Kind::kIsCommitted, file);
    if (!heard) return heard.error();
    return heard->answer.found;
  }

 private:
  Status done(Kind kind, const exports::UserFile& file) {
    const Result<Heard> heard = ask(kind, file);
    return heard ? Status() : Status(heard.error());
  }

  // `errors_too`: an error is an answer like any other.
  Result<Heard> ask(Kind kind, const exports::UserFile& file, bool errors_too = false) {
    const std::scoped_lock lock(mutex_);
    const std::string call = encode(Call{.kind = kind, .file = file});
    int reason = 0;
    for (int i = 0; i < kAttempts; ++i) {
      if (!channel_) {
        if (Status status = connect(); !status) return status.error();
      }
      Heard heard;
      reason = exchange(call, file.fd, kCallLimit, &heard);
      if (reason == 0) {
        if (!errors_too && !heard.answer.status()) return heard.answer.error;
        return heard;
      }
      channel_.reset();
      if (reason != EPIPE) break;
    }
    return lost(reason);
  }

  Status connect() {
    UniqueFd socket = connect_to(socket_);
    if (!socket) return lost(errno);
    channel_.emplace(std::move(socket));
    channel_->give_up_with(lifeline_->watched.get());
    Heard heard;
    const int reason = exchange(hello(uid_), -1, kHelloLimit, &heard);
    Status status = reason == 0 ? heard.answer.status() : Status(lost(reason));
    if (!status) channel_.reset();
    return status;
  }

  // 0, or an errno.
  int exchange(const std::string& bytes, int fd, std::chrono::milliseconds limit, Heard* heard) {
    std::vector<int> beside;
    if (fd >= 0) beside.push_back(fd);
    Parcel parcel;
    if (const int reason = channel_->send(bytes, beside, limit); reason != 0) return reason;
    if (const int reason = channel_->receive(&parcel, limit); reason != 0) return reason;
    std::optional<Answer> answer = decode_answer(parcel.bytes);
    if (!answer) return EPROTO;
    heard->answer = std::move(*answer);
    heard->descriptors = std::move(parcel.descriptors);
    return 0;
  }

  Error lost(int reason) const {
    return {ErrorCode::kDaemonNotRunning,
            "sluice-users, which opens files as the users of this host, does not "
            "answer at " +
                socket_.string() + " (" + std::strerror(reason) + "): start it, or see its log"};
  }

  const std::filesystem::path socket_;
  const uint32_t uid_;
  const std::shared_ptr<Lifeline> lifeline_;
  std::mutex mutex_;
  std::optional<Channel> channel_;
};

Client::Client(std::filesystem::path socket)
    : socket_(std::move(socket)), lifeline_(std::make_shared<Lifeline>()) {}

Client::~Client() = default;

void Client::give_up() const {
  const std::scoped_lock lock(lifeline_->mutex);
  lifeline_->held.reset();
}

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
