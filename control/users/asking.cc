// SPDX-License-Identifier: Apache-2.0
#include "control/users/asking.h"

#include <cerrno>
#include <utility>

namespace sluice::users {
namespace {

constexpr int kAttempts = 2;

Error wrong_answer() {
  return {ErrorCode::kInternal, "whoever opens files as this user gave an answer that makes no sense"};
}

}  // namespace

Result<UniqueFd> Asking::open_source(const std::string& peer, const std::string& path, bool unfinished) {
  exports::UserFile file;
  file.peer = peer;
  file.spec.path = path;
  Result<Heard> heard = ask(unfinished ? Kind::kOpenUnfinished : Kind::kOpenSource, file);
  if (!heard) return heard.error();
  if (heard->descriptors.size() != 1) return wrong_answer();
  return std::move(heard->descriptors.front());
}

Result<Asking::Opened> Asking::create(const exports::UserFile& file, catalog::Failure* why) {
  Result<Heard> heard = ask(Kind::kCreate, file, true);
  if (!heard) return heard.error();
  if (why != nullptr && heard->answer.failure != catalog::Failure::kNone) *why = heard->answer.failure;
  if (!heard->answer.status()) return heard->answer.error;
  if (heard->descriptors.size() != 2) return wrong_answer();
  return Opened{.fd = std::move(heard->descriptors[0]),
                .directory = std::move(heard->descriptors[1]),
                .name_path = std::move(heard->answer.name_path)};
}

Result<std::optional<Asking::Opened>> Asking::reopen(const exports::UserFile& file) {
  Result<Heard> heard = ask(Kind::kReopen, file);
  if (!heard) return heard.error();
  std::vector<UniqueFd>& got = heard->descriptors;
  if (!heard->answer.found) return std::optional<Opened>();
  if (got.size() != (file.fd >= 0 ? 1U : 2U)) return wrong_answer();
  Opened opened{.fd = {}, .directory = std::move(got.back()), .name_path = file.spec.path};
  if (got.size() == 2) opened.fd = std::move(got.front());
  return std::optional<Opened>(std::move(opened));
}

Status Asking::finish(const exports::UserFile& file) { return done(Kind::kFinish, file); }

Status Asking::drop(const exports::UserFile& file) { return done(Kind::kDrop, file); }

Asking::Committed Asking::commit(const exports::UserFile& file) {
  Result<Heard> heard = ask(Kind::kCommit, file, true);
  if (!heard) return {.status = heard.error(), .named = false};
  return {.status = heard->answer.status(), .named = heard->answer.found};
}

Result<bool> Asking::is_committed(const exports::UserFile& file) {
  Result<Heard> heard = ask(Kind::kIsCommitted, file);
  if (!heard) return heard.error();
  return heard->answer.found;
}

Status Asking::done(Kind kind, const exports::UserFile& file) {
  const Result<Heard> heard = ask(kind, file);
  return heard ? Status() : Status(heard.error());
}

Result<Asking::Heard> Asking::ask(Kind kind, const exports::UserFile& file, bool errors_too) {
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

int Asking::exchange(const std::string& bytes, int fd, std::chrono::milliseconds limit, Heard* heard) {
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

}  // namespace sluice::users
