// Sources of which only a part is sent, of one file that several sessions write (WIRE 2.17).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/exports/exports.h"
#include "control/selection/choice.h"
#include "control/selection/file_part.h"
#include "dataplane/base/error.h"

namespace sluice::gather {

// Of the file only this is the object; its zeros are bytes like any, since an earlier try may have put others
// there.
Status take_part(const selection::FilePart& wished, catalog::File* file);
// kUsage: what is to be sent is not one file beneath an export. Blocking.
Status check_one_file(const exports::Exports& exports, const std::vector<std::string>& paths,
                      const selection::Choice& choice);

}  // namespace sluice::gather
