// The state of a session as the API tells it: what it is called, and whether the session has ended.
//
// For control, which says it, and for clients of the API.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"

namespace sluice::api {

inline bool has_ended(Session::State state) {
  return state == Session::SUCCEEDED || state == Session::FAILED || state == Session::CANCELLED;
}
inline bool has_ended(const Session& session) { return has_ended(session.state()); }

// Nothing more happens by itself: it has ended, or an error holds it until an operator continues it.
inline bool stands_still(const Session& session) {
  return has_ended(session) || (session.state() == Session::PAUSED && session.error_code() != 0);
}

// "transferring", "succeeded", ...
inline std::string state_name(Session::State state) {
  std::string name = Session::State_Name(state);
  if (name.empty() || state == Session::STATE_UNSPECIFIED) return "unknown";
  for (char& c : name) c = static_cast<char>(c | 0x20);
  return name;
}
// A session that has ended well but for some names is "partial": peers and older nodes know its state as
// succeeded, with an error.
inline std::string state_name(const Session& session) {
  const bool partial = session.state() == Session::SUCCEEDED &&
                       session.error_code() == static_cast<uint32_t>(ErrorCode::kPartial);
  return partial ? "partial" : state_name(session.state());
}

}  // namespace sluice::api
