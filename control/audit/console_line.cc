// SPDX-License-Identifier: Apache-2.0
#include "control/audit/console_line.h"

#include <nlohmann/json.hpp>

#include "dataplane/base/text.h"
#include "dataplane/base/utc.h"

namespace sluice::audit {

std::string console_asked(const ConsoleAsked& call, int64_t now_unix_ns) {
  nlohmann::ordered_json line = {{"time", base::utc_text_us(now_unix_ns)},
                                 {"event", "console_asked"},
                                 {"asked_by", call.role},
                                 {"user", base::printable(call.user)},
                                 {"uid", call.uid},
                                 {"method", call.method},
                                 {"subject", base::printable(call.subject)},
                                 {"result", call.error.empty() ? "ok" : "refused"}};
  if (!call.error.empty()) line["error"] = base::printable(call.error);
  return line.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

}  // namespace sluice::audit
