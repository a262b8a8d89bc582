// A name of a list as a message: peers and the API have the same fields for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/names/words.h"
#include "dataplane/base/file_time.h"

namespace sluice::names {

// `Message`: peer::NameEntry or api::NameEntry. A string of either must be UTF-8; names are bytes there, and
// what is said to people is printable already.
template <typename Message>
void put_entry(const Entry& entry, Message* to) {
  to->set_path(entry.path);
  to->set_type(static_cast<decltype(to->type())>(entry.type));
  to->set_size(entry.size_bytes);
  to->set_mode(entry.mode);
  base::put_file_time(entry.mtime_ns, to);
  to->set_uid(entry.uid);
  to->set_gid(entry.gid);
  to->set_links(entry.links);
  to->set_allocated_bytes(entry.allocated_bytes);
  to->set_target(entry.target);
  if (entry.digest) to->set_digest(*entry.digest);
  to->set_digest_kind(static_cast<decltype(to->digest_kind())>(entry.digest_kind));
  to->set_error_code(entry.error_code);
  to->set_error(entry.error);
}

}  // namespace sluice::names
