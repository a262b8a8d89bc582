// What an operator asked for, checked and with the node's defaults filled in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/proto/api.pb.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/core/wire.h"

namespace sluice::control {

enum class IpFamily : uint8_t { kAny, kIp4, kIp6 };

struct Options {
  uint32_t lanes = 1;
  uint64_t rate_bps = 0;
  wire::CrcKind crc_kind = wire::CrcKind::kCrc64Ecma;
  bool overwrite = false;
  IpFamily family = IpFamily::kAny;
  uint32_t chunk_bytes = 8192;
};

inline constexpr std::string_view kMemoryPrefix = "memory:";
inline constexpr std::string_view kNullDestination = "null:";
inline constexpr uint32_t kChunkBytesDefault = 8192;
inline constexpr uint64_t kFileBytesMax = 1ULL << 60;
inline constexpr uint32_t kFilesMax = 4096;          // of one session
inline constexpr uint64_t kExtentsMax = 1ULL << 28;  // of one session: each costs a bit, and a byte

// kUsage names the option, what was found and what is allowed.
Result<Options> parse_options(const api::TransferOptions& options, const config::Node& node, bool discard);
// "memory:10G" -> bytes; nothing when the source is a path; kUsage when the size is wrong.
Result<std::optional<uint64_t>> parse_memory_source(std::string_view source);

}  // namespace sluice::control
