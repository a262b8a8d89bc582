// Does somebody have a file open for writing? The kernel tells the file's owner and CAP_LEASE.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::base {

enum class Writer : uint8_t {
  kNone,
  kSome,     // also: mapped for writing
  kUnknown,  // the file is another user's, or its file system does not tell
};
// `fd` can only read. A lease is taken for a moment: whoever comes to write just then makes this process a
// SIGURG, which nobody minds.
Writer writer_of(int fd);

}  // namespace sluice::base
