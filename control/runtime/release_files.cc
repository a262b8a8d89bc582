// Letting go of the files of a transfer, of either role: at its end, at a pause, or when control stops.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "control/exports/staging.h"
#include "control/runtime/transfer_files.h"

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

// Unfinished files that nobody holds open (a paused transfer let go of them) are removed like the others.
void remove_unheld(const exports::Exports& exports, const std::string& session_id,
                   const std::vector<catalog::File>& files, const Files& held, Directories* directories) {
  for (size_t i = 0; i < files.size(); ++i) {
    const catalog::File& file = files[i];
    if ((i < held.size() && held[i]) || file.path.empty() || file.state == catalog::FileState::kDone)
      continue;
    if (file.packed()) {
      const Result<exports::DestinationTree> tree = exports.open_destination_tree(file.path);
      if (!tree) continue;
      const auto open =
          file.keep.top && !tree->keeps_own ? tree->writable->if_needed(tree->fd.get()) : nullptr;
      exports::Staging::remove(tree->fd.get(), staging_name(session_id, ObjectId(static_cast<uint32_t>(i))));
      directories->note(tree->fd.get());
      continue;
    }
    // What is found and is the file that was made goes with this object.
    const auto found = exports.reopen_destination(spec_of(file, files.size() > 1), file.identity, UniqueFd());
    if (found && *found) {
      directories->note((*found)->directory_fd());
      continue;
    }
    // It may have been removed just before a crash.
    const auto directory = exports.open_destination_tree(file.path.substr(0, file.path.rfind('/')));
    if (directory) directories->note(directory->fd.get());
  }
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
        for (const Destination& destination : destinations) {
          if (!destination) continue;
          if (keep) destination->keep();
          if (!keep && !destination->has_name()) directories.note(destination->directory_fd());
        }
        packs.clear();
        if (!keep) remove_unheld(*exports, id, files, destinations, &directories);
        destinations.clear();
        directories.sync();
        sources.clear();
        fetched.clear();
        return 0;
      },
      [self = shared_from_this()](int) { self->post(transfer::FilesReleased{}); });
}

}  // namespace sluice::runtime
