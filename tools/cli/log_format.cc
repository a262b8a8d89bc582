// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/log_format.h"

#include <fmt/format.h>

#include <cstring>

#include "tools/cli/format.h"
#include "tools/cli/progress.h"

namespace sluice::cli {
namespace {

constexpr double kPerNs = 1e-9;

std::string bytes_text(const api::LogRecord& r) {
  if (!r.has_object()) return "";
  return fmt::format("object {}  {} bytes at {}", r.object(), r.length(), r.offset());
}

std::string what_text(const api::LogRecord& r) {
  if (r.kind() == "gap") return fmt::format("tx_seq {}  {} lost", r.tx_seq(), r.count());
  if (r.kind() == "dropped") return fmt::format("{} records are missing here", r.count());
  if (r.kind() == "rate") return format_rate(static_cast<double>(r.rate_bps()));
  if (r.kind() == "report")
    return fmt::format("received below {}  credit {}  {} gaps", r.tx_seq(), r.credit_extents(), r.gaps());
  std::string text = r.has_tx_seq() ? fmt::format("tx_seq {}  ", r.tx_seq()) : "";
  text += bytes_text(r);
  if (r.has_error_number()) text += fmt::format("  {}", std::strerror(static_cast<int>(r.error_number())));
  return text;
}

}  // namespace

std::string log_text(const api::LogRecord& r) {
  std::string line =
      fmt::format("{:>15.9f}  lane {:<2}  {:<14}  {}", static_cast<double>(r.session_ns()) * kPerNs, r.lane(),
                  printable(r.kind()), what_text(r));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string levels_text(const api::ComponentLevels& levels) {
  std::string text;
  for (const api::ComponentLevel& each : levels.levels()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", printable(each.component()),
                        each.level().empty() ? "unknown" : printable(each.level()));
  }
  return text;
}

}  // namespace sluice::cli
