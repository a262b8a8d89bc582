// What each daemon needs after its start, as data. Every call that is allowed here is one that a daemon, or a
// library in it, was seen to make or may make; the reason stands beside it where it is not plain.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "dataplane/base/sandbox/sandbox.h"

namespace sluice::sandbox {

enum class PortKind : uint8_t {
  kSockets,  // UDP sockets of the kernel, which it opens while it runs
  kMemif,    // shared memory with a peer, which comes and goes
  kKernel,   // an interface of the kernel by DPDK: af_packet, af_xdp, pcap, tap
  kVhost,  // shared memory with a peer by DPDK: vhost and virtio_user, which call each other again and again
  kCard,   // a network card by DPDK: its driver reads in /sys and speaks to devices
};

struct DataplaneNeeds {
  PortKind port = PortKind::kSockets;
  std::filesystem::path run_dir;      // its own sockets are removed there in the end
  bool raw_sockets = false;           // the device needs CAP_NET_RAW
  bool abstract_socket = false;       // of a memif
  bool memif_client = false;          // it calls its server, again and again
  bool interface_statistics = false;  // its driver reads them in /sys
};

struct ControlNeeds {
  std::filesystem::path node;  // read
  // Directories of ca_file, crl_file, addresses_file and users_map_file, read.
  std::vector<std::filesystem::path> authorities;
  std::filesystem::path run;  // its sockets are made there
  std::filesystem::path state;
  std::vector<PathRule> exports;
  std::vector<uint16_t> tcp_ports;
};

Profile dataplane_profile(const DataplaneNeeds& needs);
Profile control_profile(const ControlNeeds& needs);
// Of sluice-users and of those who it becomes, which have no capability besides.
Profile users_profile(const std::filesystem::path& run, const std::vector<PathRule>& exports);
// Of a process that opens files for whoever typed a command (control/users/for_caller.h).
Profile caller_profile(const std::vector<PathRule>& files);

}  // namespace sluice::sandbox
