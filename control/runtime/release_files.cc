// Letting go of the files of a transfer, of either role: at its end, at a pause, or when control stops.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/transfer_files.h"

namespace sluice::runtime {
namespace {

// Unfinished files that nobody holds open (a paused transfer let go of them) are removed like the others.
void remove_unheld(const exports::Exports& exports, const std::string& session_id,
                   const std::vector<catalog::File>& files,
                   const std::vector<std::shared_ptr<exports::DestinationFile>>& held) {
  for (size_t i = 0; i < files.size(); ++i) {
    const catalog::File& file = files[i];
    if ((i < held.size() && held[i]) || file.path.empty() || file.state == catalog::FileState::kDone)
      continue;
    if (file.packed()) {
      const Result<exports::DestinationTree> tree = exports.open_destination_tree(file.path);
      if (tree)
        exports::Unpacker::remove_staging(tree->fd.get(),
                                          staging_name(session_id, ObjectId(static_cast<uint32_t>(i))));
      continue;
    }
    // What is found and is the file that was made goes with this object.
    (void)exports.reopen_destination(spec_of(file), file.identity, UniqueFd());
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
  services_->pool_for(*exports_).run(
      [exports = exports_->of_user() ? exports_ : std::make_shared<exports::Exports>(services_->exports),
       files = std::move(files), sources = std::exchange(sources_, {}),
       destinations = std::exchange(destinations_, {}), fetched = std::exchange(fetched_, {}),
       packs = std::exchange(packs_, {}), id = transfer_.id(), keep = effect.keep]() mutable {
        for (const Destination& destination : destinations) {
          if (keep && destination) destination->keep();
        }
        packs.clear();
        if (!keep) remove_unheld(*exports, id, files, destinations);
        destinations.clear();
        sources.clear();
        fetched.clear();
        return 0;
      },
      [self = shared_from_this()](int) { self->post(transfer::FilesReleased{}); });
}

}  // namespace sluice::runtime
