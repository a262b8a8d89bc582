// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/folder_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "control/client/requests.h"
#include "dataplane/base/counted.h"
#include "tools/cli/folder_eyes.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/listener.h"
#include "tools/cli/state_file.h"
#include "tools/cli/teller.h"

namespace sluice::cli {
namespace {

using unattended::FileId;
using unattended::kNever;
using unattended::kOneSecondNs;
using unattended::SentFiles;
using Standing = SentFiles::Standing;

constexpr int64_t kNsOfOneMs = 1'000'000;
constexpr int64_t kGatherNs = 200 * kNsOfOneMs;    // what happens within is taken at once
constexpr int64_t kBetweenNs = 5 * kOneSecondNs;   // sessions begin: a node remembers 256 that have ended
constexpr int64_t kLookAllNs = 60 * kOneSecondNs;  // at least between looks at the whole folder
constexpr int64_t kLookShare = 100;                // of the time, one part at most
constexpr size_t kBatchesMost = 4;                 // under way
constexpr size_t kNamesMost = 20'000;              // of a batch
constexpr size_t kNamesBytesMost = 4U << 20;
constexpr size_t kLargeMost = 1000;  // files that travel by themselves, of which a session takes 4096
constexpr uint64_t kLargeBytes = 1U << 20;

class FolderWatch {
 public:
  FolderWatch(const Context& context, Folder folder, FolderPlan plan, StateFile state)
      : context_(context),
        folder_(std::move(folder)),
        plan_(std::move(plan)),
        state_(std::move(state)),
        ripeness_(plan_.rule),
        eyes_(folder_, plan_.move_to ? plan_.move_to->inode() : 0),
        sender_(context, plan_.sender, files_, [this] { return remember(true); }),
        interrupted_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Result<int> run() {
    // Before the threads, which shall not take the signals.
    const Interrupt interrupt([this] { (void)::eventfd_write(interrupted_.get(), 1); }, 0);
    std::signal(SIGIO, SIG_IGN);  // for a lease that somebody breaks while it is looked at (Folder::writer)
    if (Status status = begin(); !status) return status.error();
    Listener listener(context_.node_directory(), "");
    do {
      hear(listener.take());
      if (Status status = step(steady_now_ns()); !status) return status.error();
    } while (!wait(listener.fd()));
    return 0;
  }

 private:
  Status begin() {
    files_.read(state_.text());
    if (files_.folder() != 0 && files_.folder() != folder_.inode())
      return Error{
          ErrorCode::kConfiguration,
          fmt::format("{}: is not the directory that {} is about; mount its file system, or remove that file "
                      "if this is a new one",
                      printable(folder_.path().string()), printable(state_.path().string()))};
    const std::string to = destination();
    if (!files_.to().empty() && files_.to() != to)
      return Error{
          ErrorCode::kConfiguration,
          fmt::format("{}: is about what was sent to {}, not to {}; name another file with --state, or "
                      "remove that one to send all of it again",
                      printable(state_.path().string()), printable(files_.to()), printable(to))};
    if (files_.folder() == 0) files_.set_folder(folder_.inode());
    if (files_.to().empty()) files_.set_to(to);  // one that 1.0.0 wrote does not say it
    if (Status status = remember(true); !status) return status;
    if (Status status = eyes_.open(); !status) return status;
    look_batches_ns_ = steady_now_ns();
    return check_peer();
  }

  // However it is written.
  std::string destination() const {
    std::string path = std::filesystem::path(plan_.sender.request.destination()).lexically_normal().string();
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return plan_.sender.request.peer() + ":" + path;
  }

  // Nobody knows it while the node does not answer.
  Status check_peer() {
    api::Client* const node = sender_.client();
    if (node == nullptr) return {};
    const auto told = node->node();
    const std::string& peer = plan_.sender.request.peer();
    if (!told || api::knows_peer(*told, peer)) return {};
    return Error{ErrorCode::kPeerUntrusted,
                 fmt::format("node {} is not trusted; see 'sluice node show'", printable(peer))};
  }

  Status step(int64_t now_ns) {
    if (now_ns >= gather_ns_) see(now_ns);
    if (now_ns >= look_all_ns_) look_at_all(now_ns);
    if (now_ns >= look_batches_ns_) {
      const Result<FolderSender::Ended> ended = sender_.look(now_ns);
      if (!ended) return ended.error();
      look_batches_ns_ = sender_.next_ns();
      for (const std::string& name : ended->arrived) {
        failures_.erase(name);
        settle(name);
      }
      for (const std::string& name : ended->failed) try_later(name, now_ns);
    }
    if (now_ns >= begin_ns()) {
      if (Status status = begin_batch(now_ns); !status) return status;
      look_batches_ns_ = std::min(look_batches_ns_, sender_.next_ns());
    }
    return remember(false);
  }

  // True: somebody wants this to end.
  bool wait(int news) {
    const int64_t now_ns = steady_now_ns();
    std::vector<pollfd> fds{{.fd = interrupted_.get(), .events = POLLIN, .revents = 0},
                            {.fd = news, .events = POLLIN, .revents = 0}};
    int64_t until_ns = std::min({begin_ns(), look_all_ns_, look_batches_ns_});
    if (now_ns >= gather_ns_) {
      fds.push_back({.fd = eyes_.fd(), .events = POLLIN, .revents = 0});
    } else {
      until_ns = std::min(until_ns, gather_ns_);
    }
    const int64_t left_ms = std::clamp<int64_t>((until_ns - now_ns) / kNsOfOneMs + 1, 0, 60'000);
    return ::poll(fds.data(), fds.size(), static_cast<int>(left_ms)) > 0 && fds[0].revents != 0;
  }

  void hear(const Listener::News& news) {
    if (news.missed || news.trouble) look_batches_ns_ = 0;
    if (news.trouble) sender_.lose_client();
    for (const api::SessionEvent& event : news.events) {
      if (event.event() == "state" && sender_.follows(event.session())) look_batches_ns_ = 0;
    }
  }

  // ---- what is there -----------------------------------------------------------------------------

  void see(int64_t now_ns) {
    const FolderEyes::News news = eyes_.read();
    gather_ns_ = now_ns + kGatherNs;
    for (const FolderEyes::Change& change : news.changes) {
      if (const auto id = folder_.look(change.name)) {
        note(change.name, *id, change.closed ? How::kClosed : How::kMade, now_ns);
      } else {
        ripeness_.gone(change.name);
      }
    }
    for (const std::string& directory : news.directories) look_in(directory, now_ns);
    if (!news.lost) return;
    say("more happened in the folder than the kernel keeps (fs.inotify.max_queued_events): all of it is "
        "looked at");
    ripeness_.lost_count();
    look_all_ns_ = now_ns;
  }

  enum class How : uint8_t { kSeen, kMade, kClosed };
  void note(const std::string& name, const FileId& id, How how, int64_t now_ns) {
    if (!plan_.marker.empty() && name.ends_with(plan_.marker)) return mark(name, now_ns);
    if (!plan_.filter.takes(name, false)) return;
    const Standing standing = files_.standing(name, id);
    if (standing == Standing::kUnderWay || standing == Standing::kArrived) return;
    if (how == How::kMade) return ripeness_.opened(name, now_ns);
    // Made without being opened, as by link(); or its end was missed.
    const bool closed_unseen =
        how == How::kSeen && ripeness_.is_open(name) && folder_.writer(name) != base::Writer::kSome;
    if (how == How::kClosed || closed_unseen) return ripeness_.closed(name, id, now_ns);
    ripeness_.seen(name, id, now_ns);
  }

  void mark(const std::string& marker, int64_t now_ns) {
    const std::string name = marker.substr(0, marker.size() - plan_.marker.size());
    if (name.empty() || name.ends_with('/') || !plan_.filter.takes(name, false)) return;
    const auto id = folder_.look(name);
    if (id) {
      const Standing standing = files_.standing(name, *id);
      if (standing == Standing::kUnderWay || standing == Standing::kArrived) return;
      ripeness_.seen(name, *id, now_ns);
    }
    ripeness_.marked(name, now_ns);
  }

  bool look_in(const std::string& directory, int64_t now_ns, std::set<std::string>* there = nullptr) {
    return eyes_.look(directory, [&](const std::string& name, const struct stat& info) {
      note(name, folder_.id_of(info), How::kSeen, now_ns);
      if (there != nullptr) there->insert(name);
    });
  }

  void look_at_all(int64_t now_ns) {
    std::set<std::string> there;
    const bool whole = look_in("", now_ns, &there);
    if (whole) files_.forget_unless([&there](const std::string& name) { return there.contains(name); });
    if (!whole && eyes_.problem() != problem_) say(eyes_.problem());
    problem_ = whole ? "" : eyes_.problem();
    if (eyes_.blind() && !std::exchange(said_blind_, true))
      say("the kernel has no more watches (fs.inotify.max_user_watches): some directories are looked at once "
          "a minute");
    for (const std::string& name : files_.all_with_receipt()) settle(name);
    const int64_t took_ns = steady_now_ns() - now_ns;
    look_all_ns_ = now_ns + std::max(kLookAllNs, kLookShare * took_ns);
  }

  // ---- what is sent ------------------------------------------------------------------------------

  int64_t begin_ns() const {
    if (files_.batches().size() >= kBatchesMost) return kNever;
    return std::max({ripeness_.next_ns(), last_begun_ns_ + kBetweenNs, hold_ns_});
  }

  SentFiles::Files take_ripe(int64_t now_ns) {
    SentFiles::Files ripe;
    size_t bytes = 0;
    size_t large = 0;
    for (const std::string& name : ripeness_.ripe(now_ns, kNamesMost)) {
      if (bytes > kNamesBytesMost || large > kLargeMost) break;
      const auto id = folder_.look(name);
      if (!id) {
        ripeness_.gone(name);
        continue;
      }
      if (!ripeness_.confirm(name, *id, now_ns)) continue;
      const Standing standing = files_.standing(name, *id);
      const bool written =
          plan_.marker.empty() && standing == Standing::kNew && folder_.writer(name) == base::Writer::kSome;
      if (written || standing == Standing::kBusy) {
        ripeness_.later(name, now_ns + std::max(plan_.rule.quiet_ns, kOneSecondNs));
        ripeness_.seen(name, *id, now_ns);
      } else if (standing == Standing::kNew) {
        ripe.emplace_back(name, *id);
        bytes += name.size();
        large += id->size > kLargeBytes ? 1 : 0;
      }
    }
    return ripe;
  }

  Status begin_batch(int64_t now_ns) {
    const SentFiles::Files ripe = take_ripe(now_ns);
    if (ripe.empty()) return {};
    const Status status = sender_.begin(ripe, now_ns);
    if (status) {
      last_begun_ns_ = now_ns;
      refusals_ = 0;
      begun_ = true;
      return {};
    }
    const ErrorCode code = status.error().code;
    const bool hopeless = code == ErrorCode::kUsage || code == ErrorCode::kConfiguration ||
                          code == ErrorCode::kPeerUntrusted || code == ErrorCode::kOutsideExports ||
                          code == ErrorCode::kIncompatible;
    const bool unwritten = code == ErrorCode::kStorage || code == ErrorCode::kNoSpace;
    if ((hopeless && !begun_) || unwritten) return status;
    const int64_t wait_ns = waits_.after_ns(++refusals_);
    hold_ns_ = now_ns + wait_ns;
    if (code != ErrorCode::kDaemonNotRunning)
      say(fmt::format("{} cannot be sent: {}; tried again in {} s",
                      base::counted(ripe.size(), "file", "files"), status.error().message,
                      wait_ns / kOneSecondNs));
    for (const auto& [name, id] : ripe) {
      ripeness_.seen(name, id, now_ns);
      ripeness_.later(name, hold_ns_);
    }
    return {};
  }

  void try_later(const std::string& name, int64_t now_ns) {
    const auto id = folder_.look(name);
    if (!id) return;
    ripeness_.seen(name, *id, now_ns);
    ripeness_.later(name, now_ns + waits_.after_ns(++failures_[name]));
  }

  // ---- what has arrived --------------------------------------------------------------------------

  void settle(const std::string& name) {
    const FileId* const id = files_.with_receipt(name);
    if (id == nullptr || (!plan_.removes && !plan_.move_to)) return;
    // The marker first: alone it would finish the next file of this name at its first byte.
    if (!plan_.marker.empty()) {
      const std::string marker = name + plan_.marker;
      if (const auto its = folder_.look(marker)) (void)folder_.remove(marker, *its);
    }
    const Result<Folder::Done> done =
        plan_.move_to ? folder_.move(name, *id, *plan_.move_to) : folder_.remove(name, *id);
    if (done) {
      if (*done != Folder::Done::kChanged) files_.forget(name);
      complained_.erase(name);
    } else if (complained_.insert(name).second) {
      say(done.error().message + "; it has arrived, and is not sent again");
    }
  }

  // ---- what is said and remembered ---------------------------------------------------------------

  Status remember(bool durable) {
    const std::string lines = files_.take_lines();
    return state_.append(lines, durable, [this] { return files_.all_lines(); });
  }

  void say(const std::string& text) const {
    context_.environment.err << "sluice: " << printable(text) << "\n" << std::flush;
  }

  const Context& context_;
  const Folder folder_;
  const FolderPlan plan_;
  StateFile state_;
  unattended::Ripeness ripeness_;
  SentFiles files_;
  FolderEyes eyes_;
  FolderSender sender_;
  UniqueFd interrupted_;
  unattended::Waits waits_;
  std::map<std::string, uint32_t> failures_;  // in a row, by name
  std::set<std::string> complained_;          // of these
  std::string problem_;
  uint32_t refusals_ = 0;
  bool begun_ = false;
  bool said_blind_ = false;
  int64_t gather_ns_ = 0;
  int64_t look_all_ns_ = 0;
  int64_t look_batches_ns_ = 0;
  int64_t last_begun_ns_ = -kBetweenNs;
  int64_t hold_ns_ = 0;
};

}  // namespace

Result<int> watch_folder(const Context& context, Folder folder, FolderPlan plan) {
  Result<StateFile> state = StateFile::open(plan.state, SentFiles::is_first_line);
  if (!state) return state.error();
  return FolderWatch(context, std::move(folder), std::move(plan), std::move(*state)).run();
}

}  // namespace sluice::cli
