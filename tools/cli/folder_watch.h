// The loop of `sluice watch`: what is finished in a folder is sent, each file once, and what has arrived is
// removed or moved if that is wanted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "control/selection/filter.h"
#include "tools/cli/app.h"
#include "tools/cli/folder_hands.h"
#include "tools/cli/folder_sender.h"
#include "tools/unattended/ripeness.h"

namespace sluice::cli {

struct FolderPlan {
  unattended::Ripeness::Rule rule;
  std::string marker;        // empty: none is needed
  selection::Filter filter;  // of files
  bool removes = false;
  std::optional<Folder> move_to;
  FolderSender::Options sender;
  std::filesystem::path state;
};

// Until it is interrupted.
Result<int> watch_folder(const Context& context, Folder folder, FolderPlan plan);

}  // namespace sluice::cli
