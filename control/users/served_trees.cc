// SPDX-License-Identifier: Apache-2.0
#include "control/users/served_trees.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "control/exports/staging.h"
#include "control/exports/temporary.h"
#include "control/gather/packs.h"
#include "control/gather/preview.h"
#include "control/gather/sources.h"
#include "dataplane/base/text.h"

namespace sluice::users {
namespace {

using Clock = std::chrono::steady_clock;
using exports::Exports;

constexpr std::chrono::seconds kTreesSendLimit{120};  // control takes what it is told at its own pace
constexpr std::chrono::milliseconds kSign{500};       // of life, where nothing is found for so long
constexpr size_t kListBytes = 8U << 20;               // of the lists of packs, of an answer
constexpr size_t kPreviewEntries = 1000;
constexpr size_t kStagedMax = 256;

// What is found, said in answers.
class Telling final : public gather::SourceSink {
 public:
  explicit Telling(Channel& channel) : channel_(channel) {}

  // Nobody hears it: whoever asked has hung up.
  Status go_on() override {
    if (Clock::now() - said_at_ < kSign) return {};
    return say({});
  }
  Status take(gather::OpenSources part) override {
    Answer last;
    if (Status status = tell(std::move(part.files), &last); !status) return status;
    return last.files.empty() ? Status() : say(last);
  }

  // All but the last of so many answers.
  Status tell(std::vector<catalog::File> files, Answer* last) {
    Answer answer;
    size_t bytes = 0;
    for (catalog::File& file : files) {
      bytes += file.pack.list ? file.pack.list->size() : file.name.size() + file.path.size();
      answer.files.push_back(std::move(file));
      if (bytes < kListBytes) continue;
      if (Status status = say(std::exchange(answer, {})); !status) return status;
      bytes = 0;
    }
    *last = std::move(answer);
    return {};
  }
  Status take_entry(const catalog::Entry& entry) {
    entries_.push_back(entry);
    if (entries_.size() < kPreviewEntries) return go_on();
    return say({.entries = std::exchange(entries_, {})});
  }
  bool end(const Status& status) {
    Answer last{.entries = std::move(entries_), .ended = true};
    if (!status) last.error = status.error();
    return channel_.send(encode(last), {}, kTreesSendLimit) == 0;
  }

 private:
  Status say(const Answer& answer) {
    said_at_ = Clock::now();
    if (channel_.send(encode(answer), {}, kTreesSendLimit) == 0) return {};
    return Error{ErrorCode::kCancelled, "nobody wants the list of files any more"};
  }

  Channel& channel_;
  Clock::time_point said_at_ = Clock::now();
  std::vector<catalog::Entry> entries_;
};

Error no_staging(const std::string& name) {
  return {ErrorCode::kInternal, base::printable(name) + ": no name of what is under way"};
}

}  // namespace

// Anew each time: what the user may reach, and what is mounted, changes. Other processes of theirs give names
// of the session as well.
Exports ServedTrees::open(const Call& call) const {
  Exports open = Exports::open_reachable(served_.exports).for_peer(call.file.peer);
  open.others_give_too();
  return open;
}

bool ServedTrees::answer(const Call& call, UniqueFd fd) {
  for (const uint64_t number : call.tree.forgotten) staged_.erase(number);
  if (served_.names) {
    const Answer refused{.error = Exports::not_as_user("directories", "outside the exports there are none"),
                         .ended = true};
    return channel_.send(encode(refused), {}, kTreesSendLimit) == 0;
  }
  if (call.kind == Kind::kList) return list(call);
  if (call.kind == Kind::kPreview) return preview(call);
  Reply reply;
  if (const Status status = perform(call, std::move(fd), reply); !status) reply.answer.error = status.error();
  std::vector<int> beside;
  if (reply.beside) beside.push_back(reply.beside.get());
  return channel_.send(encode(reply.answer), beside, kTreesSendLimit) == 0;
}

Status ServedTrees::perform(const Call& call, UniqueFd fd, Reply& reply) {
  const exports::DestinationSpec& spec = call.file.spec;
  const Exports open = this->open(call);
  switch (call.kind) {
    case Kind::kOpenTree: {
      Result<std::string> path = open.destination_path(spec.path, spec.keep);
      if (path) reply.answer.name_path = std::move(*path);
      return path ? Status() : Status(path.error());
    }
    case Kind::kMakeMissing:
      return open.make_missing(spec.path, spec.is_directory, spec.keep);
    case Kind::kMakeDirectories: {
      Result<std::string> path = open.make_directories_for(spec.path, spec.name, &reply.answer.failure);
      if (path) reply.answer.name_path = std::move(*path);
      return path ? Status() : Status(path.error());
    }
    case Kind::kFillPack: {
      const Result<std::shared_ptr<gather::PackMemory>> filled = gather::fill_pack(open, *call.tree.pack);
      if (filled) reply.beside = UniqueFd(::fcntl((*filled)->fd(), F_DUPFD_CLOEXEC, 0));
      return filled ? Status() : Status(filled.error());
    }
    case Kind::kLookAtPack:
      reply.answer.missing.names = gather::names_of_changed(open, *call.tree.pack);
      return {};
    case Kind::kStagePack:
      return stage(call, std::move(fd));
    case Kind::kNamePack:
      return name(call, reply.answer);
    case Kind::kRemoveStaging:
      return remove_staging(call);
    default:
      return Error{ErrorCode::kInternal, "sluice-control asked for nothing about directories"};
  }
}

bool ServedTrees::list(const Call& call) {
  const exports::UserTrees::Wish& wish = *call.tree.wish;
  Telling telling(channel_);
  Result<gather::OpenSources> rest =
      gather::open_sources(open(call), wish.paths, wish.selection, &telling, wish.known, 0, wish.expected);
  if (!rest) return telling.end(rest.error());
  // With the word that it is the end: a list of one part never grows.
  Answer last;
  if (!telling.tell(std::move(rest->files), &last)) return false;
  last.ended = true;
  return channel_.send(encode(last), {}, kTreesSendLimit) == 0;
}

bool ServedTrees::preview(const Call& call) {
  const exports::UserTrees::Wish& wish = *call.tree.wish;
  Telling telling(channel_);
  return telling.end(
      gather::preview_sources(open(call), wish.paths, wish.selection,
                              [&telling](const catalog::Entry& entry) { return telling.take_entry(entry); }));
}

Status ServedTrees::stage(const Call& call, UniqueFd fd) {
  if (!exports::is_temporary_name(call.tree.staging)) return no_staging(call.tree.staging);
  if (staged_.size() >= kStagedMax)
    return Error{ErrorCode::kResources, "so many packs wait for their names that one more has to wait"};
  const Result<gather::PackView> view = gather::PackView::of(fd.get(), call.tree.pack->size_bytes);
  if (!view) return view.error();
  std::shared_ptr<const digests::Expected> expected;
  if (!call.tree.expected.empty()) expected = std::make_shared<const digests::Expected>(call.tree.expected);
  Result<std::shared_ptr<exports::Unpacking>> staged =
      gather::stage_here(open(call), *call.tree.pack, view->bytes(), call.tree.staging, nullptr,
                         std::move(expected), served_.umask);
  if (!staged) return staged.error();
  staged_[call.tree.number] = std::move(*staged);
  return {};
}

Status ServedTrees::name(const Call& call, Answer& answer) {
  const auto at = staged_.find(call.tree.number);
  answer.found = at != staged_.end();
  if (!answer.found) return {};
  if (Status status = at->second->commit(); !status) return status;
  answer.missing = at->second->missing();
  answer.digests = at->second->digests();
  staged_.erase(at);
  return {};
}

Status ServedTrees::remove_staging(const Call& call) const {
  const catalog::File& pack = *call.tree.pack;
  if (!exports::is_temporary_name(call.tree.staging)) return no_staging(call.tree.staging);
  const Exports open = this->open(call);
  const Result<UniqueFd> directory = open.open_to_remove(pack.path);
  if (!directory) return directory.error();
  if (!*directory) return {};
  const auto opened = pack.keep.top ? open.open_up_for_now(directory->get()) : nullptr;
  exports::Staging::remove(directory->get(), call.tree.staging);
  ::fsync(directory->get());
  return {};
}

}  // namespace sluice::users
