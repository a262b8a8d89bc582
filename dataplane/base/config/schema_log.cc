// Keys of [log]: how much each component of the daemons logs (dataplane/base/log.h); see schema.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

constexpr std::string_view kLevels = "default trace debug info warn error critical off";

const Key kLogKeys[] = {
    {.section = "log",
     .name = "control",
     .type = ValueType::kChoice,
     .field = &Node::log_control,
     .choices = kLevels,
     .meaning = "How much sluice-control logs of all that none of the others is; `default`: as `log_level`."},
    {.section = "log",
     .name = "session",
     .type = ValueType::kChoice,
     .field = &Node::log_session,
     .choices = kLevels,
     .meaning = "Of what sessions do."},
    {.section = "log",
     .name = "peer",
     .type = ValueType::kChoice,
     .field = &Node::log_peer,
     .choices = kLevels,
     .meaning = "Of connections of peers, and what they ask for."},
    {.section = "log",
     .name = "board",
     .type = ValueType::kChoice,
     .field = &Node::log_board,
     .choices = kLevels,
     .meaning = "Of control's way to the dataplane."},
    {.section = "log",
     .name = "dataplane",
     .type = ValueType::kChoice,
     .field = &Node::log_dataplane,
     .choices = kLevels,
     .meaning = "Of sluice-dataplane."},
};

}  // namespace

std::span<const Key> log_keys() { return kLogKeys; }

const std::string& Node::log_level_of(std::string_view component) const {
  for (const Key& key : kLogKeys) {
    const std::string& level = this->*std::get<std::string Node::*>(key.field);
    if (key.name == component && level != "default") return level;
  }
  return log_level;
}

}  // namespace sluice::config
