// Looks at the host and at a node's directory for `sluice doctor`: files of sysfs and procfs, limits, file
// systems. Changes nothing, and leaves nothing behind: what is tried on a disk has no name.
//
// Blocks, for seconds where a peer or a file system does not answer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "control/identity/trust.h"
#include "tools/doctor/facts.h"

namespace sluice::doctor {

// All but the daemon, whom the command asks itself.
Facts gather(const std::filesystem::path& directory);

// Also where there is no node, or it may not be looked into.
LookerFacts gather_looker(const std::filesystem::path& directory);
// Those of the node's daemons that run. The dataplane is asked only if it has a control: one that has none
// might take this command for it.
void gather_processes(const config::Node& node, Facts* facts);

// ---- parts; `root` stands for "/" in tests ----
// Of a file that has but one. Empty: there is no such file.
std::string first_word(const std::filesystem::path& file);
std::vector<HugepagePool> gather_hugepages(const std::filesystem::path& root);
std::vector<CpuFacts> gather_cpus(const std::filesystem::path& root, const std::vector<int>& allowed);
// "0,2-5" as the kernel writes lists of CPUs; what is no such list is empty.
std::vector<int> parse_cpu_list(const std::string& text);
DeviceFacts gather_device(const config::Node& node, const std::filesystem::path& root);
ExportFacts gather_export(const config::Export& root);
// What lies beneath a directory. The speed is tried with a file that has no name and is gone with its
// descriptor: 32 MiB at most, for half a second each way.
DiskFacts gather_disk(const std::filesystem::path& directory, const std::filesystem::path& root);
// Those of the file system that it lies in, of the kernel's list of mounts.
std::string gather_mount_options(const std::filesystem::path& directory, const std::filesystem::path& root);
void try_speed(const std::filesystem::path& directory, DiskFacts* disk);
std::vector<std::vector<int>> gather_numa_distances(const std::filesystem::path& root);
KernelFacts gather_kernel();
// Nothing: there is no such process, or it cannot be seen.
std::optional<ProcessFacts> gather_process(const std::string& program, int pid,
                                           const std::filesystem::path& root);
std::vector<ExpiryFacts> gather_expiries(const std::vector<identity::Expiry>& all, int64_t now_unix_s);
std::optional<UsersFacts> gather_users(const config::Node& node);
PeerFacts gather_peer(const identity::Peer& peer);
// Nodes whose sluice-dataplane runs on this host, in this command's network, but the one in `own`.
std::vector<OtherNode> gather_other_nodes(const std::filesystem::path& own,
                                          const std::filesystem::path& root);
// Why no line can be added to the audit log; empty: one can. It makes none.
std::string gather_audit_problem(const config::Node& node);
// Why sluice-control could not listen where it should; empty: it could, or it is not to.
std::string gather_listen_problem(const config::Node& node);

}  // namespace sluice::doctor
