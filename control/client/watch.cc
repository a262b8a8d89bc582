// SPDX-License-Identifier: Apache-2.0
#include "control/client/watch.h"

#include "control/client/requests.h"
#include "control/proto/session_state.h"

namespace sluice::api {

Watched watch_session(Control::Stub& control, const std::string& id, std::optional<double> timeout_s,
                      const std::function<bool(const Session&)>& on_change) {
  Watched watched;
  bool enough = false;
  Call call(control, timeout_s);
  watched.failure =
      call.read(control.WatchSession(call.context(), reference(id)), [&](const Session& session) {
        watched.last = session;
        enough = !on_change(session);
        return !enough && !stands_still(session);
      });
  const bool late = watched.failure && watched.failure->kind == Failure::Kind::kLate;
  if (stands_still(watched.last)) {
    watched.end = Watched::End::kStandsStill;
  } else if (enough) {
    watched.end = Watched::End::kEnough;
  } else if (timeout_s && late) {
    watched.end = Watched::End::kTimeOver;
  }
  return watched;
}

}  // namespace sluice::api
