// SPDX-License-Identifier: Apache-2.0
#include "control/node/logs.h"

#include <fmt/format.h>

#include "dataplane/base/log.h"

namespace sluice::node {

Result<LogView> Logs::log(const std::string& id) const {
  const Result<transfer::View> found = sessions_.find(id);
  if (!found) return found.error();
  if (auto elsewhere = not_here(*found)) return *std::move(elsewhere);
  const board::SessionLog* const log = services_->logs.find(found->id);
  if (log == nullptr) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("the log of session {} is not there any more: those of the last {} that ended in "
                    "this life of sluice-control are kept",
                    found->id, runtime::SessionLogs::kEndedKept)};
  }
  return LogView{.id = found->id,
                 .started_unix_ns = found->started_unix_ns,
                 .ended = sessions_.active(found->id) == nullptr,
                 .log = log};
}

Result<std::string> Logs::set_level(const std::string& id, const std::string& name) const {
  const auto level = board::log_level_of(name);
  if (!level) return Error{ErrorCode::kUsage, board::wrong_log_level(name)};
  const Result<Sessions::Task> task = sessions_.find_active(id);
  if (!task) return task.error();
  const std::string& whole = (*task)->transfer().id();
  services_->logs.of(whole)->set_level(*level);
  return whole;
}

// ---- the daemons' own logs ---------------------------------------------------------------------

asio::awaitable<std::vector<ComponentLevel>> Logs::component_levels() const {
  std::vector<ComponentLevel> levels;
  for (const char* const component : log::kOfControl)
    levels.push_back({.component = component, .level = log::level_name(log::level(component))});
  const auto board = services_->board->attached();
  ComponentLevel& dataplane = levels.emplace_back(ComponentLevel{.component = log::kDataplane, .level = {}});
  if (!board) co_return levels;
  if (const Result<uint32_t> level = co_await board->log_level(std::nullopt))
    dataplane.level = log::level_name(*level);
  co_return levels;
}

asio::awaitable<Status> Logs::set_component_level(std::string component, std::string name) const {
  const auto level = log::level_of(name);
  if (!level)
    co_return Error{ErrorCode::kUsage,
                    fmt::format("log level \"{}\": use {}", name, fmt::join(log::kLevels, ", "))};
  bool known = component == log::kDataplane || component.empty();
  if (known) {
    const auto board = services_->board->attached();
    if (!board && !component.empty()) co_return no_dataplane(services_->node);
    if (board) {
      const Result<uint32_t> set = co_await board->log_level(*level);
      if (!set) co_return set.error();
    }
  }
  for (const char* const each : log::kOfControl) {
    if (!component.empty() && component != each) continue;
    log::set_level(each, *level);
    known = true;
  }
  if (known) co_return Status();
  co_return Error{ErrorCode::kUsage, fmt::format("no component \"{}\": there are {} and {}", component,
                                                 fmt::join(log::kOfControl, ", "), log::kDataplane)};
}

}  // namespace sluice::node
