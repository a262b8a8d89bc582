// Letting go of the files of a transfer, of either role: at its end, at a pause, or when control stops.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "control/exports/as_user.h"
#include "control/exports/staging.h"
#include "control/runtime/transfer_files.h"
#include "dataplane/base/log.h"

namespace sluice::runtime {
namespace {

using Files = std::vector<std::shared_ptr<exports::DestinationFile>>;

// Directories from which something is removed. It must not come back with a loss of power after the journal
// has forgotten it: nobody would look for it any more.
class Directories {
 public:
  void note(int directory_fd) {
    struct stat info {};
    if (::fstat(directory_fd, &info) != 0) return;  // the user's own process holds it
    UniqueFd& fd = fds_[{info.st_dev, info.st_ino}];
    if (!fd) fd = UniqueFd(::fcntl(directory_fd, F_DUPFD_CLOEXEC, 0));
  }
  void sync() const {
    for (const auto& [directory, fd] : fds_) ::fsync(fd.get());
  }

 private:
  std::map<std::pair<dev_t, ino_t>, UniqueFd> fds_;
};

// Unfinished files that stay, and why.
using Left = std::vector<Error>;

// A user's file may be touched only by that user's process.
Status remove_of_user(const exports::Exports& exports, const catalog::File& file, bool one_of_many,
                      const std::string& session_id, ObjectId object) {
  if (exports::UserTrees* const trees = exports.trees_of_user(); file.packed())
    return trees == nullptr
               ? Status()
               : trees->remove_staging(exports.peer(), file, gather::staging_name(session_id, object));
  // A user's file is no part, of which alone the kind of CRC matters.
  auto found = exports.reopen_destination(spec_of(file, one_of_many, wire::CrcKind::kCrc64Ecma),
                                          file.identity, UniqueFd());
  if (!found) return found.error();
  return *found ? (*found)->give_up() : Status();
}

// Unfinished files that nobody holds open (a paused transfer let go of them) are removed like the others.
void remove_unheld(const exports::Exports& exports, const std::string& session_id,
                   const std::vector<catalog::File>& files, const Files& held, Directories* directories,
                   Left* left) {
  for (size_t i = 0; i < files.size(); ++i) {
    const catalog::File& file = files[i];
    if ((i < held.size() && held[i]) || file.path.empty() || file.state == catalog::FileState::kDone)
      continue;
    if (selection::is_part(file.part)) continue;  // others write that file as well
    if (exports.of_user()) {
      const ObjectId object(static_cast<uint32_t>(i));
      if (const Status status = remove_of_user(exports, file, files.size() > 1, session_id, object); !status)
        left->push_back(status.error());
      continue;
    }
    Result<UniqueFd> directory = file.packed() ? exports.open_to_remove(file.path)
                                               : exports.remove_unfinished(file.path, file.identity);
    if (!directory) {
      left->push_back(directory.error());
      continue;
    }
    if (!*directory) continue;
    if (file.packed()) {
      const auto open = file.keep.top ? exports.open_up_for_now(directory->get()) : nullptr;
      exports::Staging::remove(directory->get(),
                               gather::staging_name(session_id, ObjectId(static_cast<uint32_t>(i))));
    }
    directories->note(directory->get());
  }
}

// An operator has to know of what is left, but not of each of thousands.
void tell(const std::string& session, const Left& left) {
  constexpr size_t kTold = 10;
  for (size_t i = 0; i < std::min(left.size(), kTold); ++i) {
    log::of(log::kSession)
        ->warn(
            "{}: an unfinished file stays: {}; mend that and restart sluice-control, which then removes it, "
            "or remove it by hand",
            session, left[i].message);
  }
  if (left.size() > kTold)
    log::of(log::kSession)->warn("{}: so do {} more unfinished files", session, left.size() - kTold);
}

}  // namespace

// Removing a large unfinished file takes its time.
void TransferFiles::perform(const transfer::ReleaseFiles& effect) {
  std::vector<catalog::File> files;
  if (transfer_.job().destination() != nullptr) {
    const auto& all = transfer_.job().catalog()->files();
    files.assign(all.begin(), all.end());
  }
  list_.reset();
  reserved_.clear();
  for (const catalog::File& file : files) {
    if (effect.keep && !file.packed() && !file.path.empty() && file.state != catalog::FileState::kDone)
      reserved_.push_back(services_->exports.reserve(file.identity, file.path));
  }
  closed_.clear();
  files_part().run(
      [exports = exports_->of_user() ? exports_ : std::make_shared<exports::Exports>(services_->exports),
       files = std::move(files), sources = std::exchange(sources_, {}),
       destinations = std::exchange(destinations_, {}), fetched = std::exchange(fetched_, {}),
       packs = std::exchange(packs_, {}), id = transfer_.id(), keep = effect.keep]() mutable {
        Directories directories;
        Left left;
        for (const Destination& destination : destinations) {
          if (!destination) continue;
          if (keep) destination->keep();
          if (keep || destination->has_name()) continue;
          directories.note(destination->directory_fd());
          if (const Status status = destination->give_up(); !status) left.push_back(status.error());
        }
        packs.clear();
        if (!keep) remove_unheld(*exports, id, files, destinations, &directories, &left);
        destinations.clear();
        directories.sync();
        sources.clear();
        fetched.clear();
        return left;
      },
      [self = shared_from_this()](const Left& left) {
        tell(self->transfer_.log_name(), left);
        self->post(transfer::FilesReleased{.left = static_cast<uint32_t>(left.size())});
      });
}

}  // namespace sluice::runtime
