// What makes a node that of the package's services: whose its files are, and where it runs.
//
// Blocking; only root may. `root` stands for "/" in tests. Users and groups are those of passwd and group, as
// the package makes them there; this program asks no other source of names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

inline constexpr std::string_view kServiceNode = "/etc/sluice";  // of the units
inline constexpr std::string_view kServiceState = "/var/lib/sluice";
inline constexpr std::string_view kServiceRun = "/run/sluice";

struct ServiceUsers {
  uid_t control = 0;  // sluice-control
  gid_t control_group = 0;
  gid_t dataplane = 0;  // group sluice-dataplane
  gid_t operators = 0;  // group sluice
};

// Nothing: they are not there, the package is not installed.
std::optional<ServiceUsers> service_users(const std::filesystem::path& root);
void use_service(config::TemplateOptions& options);

// Of a node that was just made: the key is the control daemon's, sockets lie in /run.
Status hand_over(const std::filesystem::path& directory, const ServiceUsers& users,
                 const std::filesystem::path& root);
// A directory to share, which members of the group may fill. One that is there is left as it is.
Status make_shared(const std::filesystem::path& directory, const std::optional<ServiceUsers>& users);
// sluice-dataplane.service has these rights besides (Carrier::service_rights); or, of an empty text, none any
// more.
Status grant(const std::string& rights, const std::filesystem::path& root);

}  // namespace sluice::cli
