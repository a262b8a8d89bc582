// What a source would send, and what of it would not arrive: `--dry-run`. Nothing is sent.
//
// Each file is opened, so that what may not be read is told; nothing of it is read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/catalog/entry.h"
#include "control/exports/exports.h"
#include "control/selection/choice.h"
#include "dataplane/base/error.h"

namespace sluice::gather {

// Paths are those under which they would arrive. An error of it ends the preview, and is returned.
using TakePreview = std::function<Status(const catalog::Entry& entry)>;

// Blocking. The error is the one with which the transfer would not begin.
Status preview_sources(const exports::Exports& exports, const std::vector<std::string>& paths,
                       const selection::Selection& selection, const TakePreview& take);

}  // namespace sluice::gather
