// SPDX-License-Identifier: Apache-2.0
#include "control/session/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/board/flow_table.h"

namespace sluice::control {
namespace {

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

}  // namespace

Result<Options> parse_options(const api::TransferOptions& options, const config::Node& node, bool discard) {
  Options result;
  result.lanes = options.lanes() != 0 ? options.lanes() : node.lanes;
  if (result.lanes > kLanesMax)
    return usage(fmt::format("lanes = {}: 1 to {} are possible", result.lanes, kLanesMax));
  result.rate_bps = options.rate_bps() != 0 ? options.rate_bps() : node.rate_bps;
  result.rate_bps = std::min(result.rate_bps, node.port_rate_bps);
  const std::string& crc = options.crc().empty() ? node.crc : options.crc();
  if (crc == "crc64") {
    result.crc_kind = wire::CrcKind::kCrc64Ecma;
  } else if (crc == "crc32c") {
    result.crc_kind = wire::CrcKind::kCrc32c;
  } else if (crc == "none") {
    if (!discard)
      return usage("crc = \"none\": only into null:, files are always checked: use crc64 or crc32c");
    result.crc_kind = wire::CrcKind::kNone;
  } else {
    return usage(fmt::format("crc = \"{}\": use crc64, crc32c, or none into null:", crc));
  }
  if (options.ip() == "4") {
    result.family = IpFamily::kIp4;
  } else if (options.ip() == "6") {
    result.family = IpFamily::kIp6;
  } else if (!options.ip().empty()) {
    return usage(fmt::format("ip = \"{}\": use 4 or 6", options.ip()));
  }
  result.chunk_bytes = options.chunk_bytes() != 0 ? options.chunk_bytes()
                       : node.chunk_bytes != 0    ? node.chunk_bytes
                                                  : kChunkBytesDefault;
  if (result.chunk_bytes < wire::kChunkBytesMin || result.chunk_bytes > wire::kChunkBytesMax ||
      result.chunk_bytes % wire::kChunkBytesStep != 0) {
    return usage(fmt::format("chunk_bytes = {}: a multiple of {}, {} to {}", result.chunk_bytes,
                             wire::kChunkBytesStep, wire::kChunkBytesMin, wire::kChunkBytesMax));
  }
  result.overwrite = options.overwrite();
  return result;
}

Result<std::optional<uint64_t>> parse_memory_source(std::string_view source) {
  if (!source.starts_with(kMemoryPrefix)) return std::optional<uint64_t>();
  const Result<uint64_t> bytes = config::parse_size(source.substr(kMemoryPrefix.size()));
  if (!bytes) return usage(fmt::format("{}: {}", source, bytes.error().message));
  if (*bytes > kFileBytesMax) return usage(fmt::format("{}: at most 1 EiB", source));
  return std::optional<uint64_t>(*bytes);
}

}  // namespace sluice::control
