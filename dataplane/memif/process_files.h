// What the kernel tells of this process's own memory and descriptors, kept open: a dataplane cannot open a
// file any more once it serves.
//
// One thread, that of the links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace sluice::memif {

// Opens them, if they are not open. Before the process gives up opening files.
void open_process_files();

std::vector<std::string> own_maps();  // lines of /proc/self/maps
std::vector<int> own_descriptors();

}  // namespace sluice::memif
