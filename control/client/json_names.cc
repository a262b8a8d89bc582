// See json.h: names at another node.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "control/client/json.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/text.h"

namespace sluice::api {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

void put_bytes(Json& out, const std::string& key, const std::string& bytes) {
  out[key] = bytes;  // to_line() puts replacement characters
  if (!base::is_utf8(bytes)) out[key + "_bytes"] = hex(bytes);
}

std::string error_name(uint32_t code) {
  return code <= static_cast<uint32_t>(kErrorCodeLast)
             ? std::string(error_code_name(static_cast<ErrorCode>(code)))
             : "unknown";
}

}  // namespace

std::string_view type_name(NameEntry::Type type) {
  switch (type) {
    case NameEntry::FILE:
      return "file";
    case NameEntry::DIRECTORY:
      return "directory";
    case NameEntry::LINK:
      return "link";
    case NameEntry::FIFO:
      return "fifo";
    case NameEntry::SOCKET:
      return "socket";
    case NameEntry::CHARACTER_DEVICE:
      return "character_device";
    case NameEntry::BLOCK_DEVICE:
      return "block_device";
    default:
      return "unknown";
  }
}

Json name_json(const NameEntry& entry, const std::string& path) {
  Json out;
  put_bytes(out, "path", path);
  out["type"] = type_name(entry.type());
  out["size_bytes"] = entry.size();
  out["allocated_bytes"] = entry.allocated_bytes();
  out["mode"] = fmt::format("{:04o}", entry.mode());
  out["uid"] = entry.uid();
  out["gid"] = entry.gid();
  out["links"] = entry.links();
  out["mtime_ns"] = entry.mtime_ns();
  out["mtime_seconds"] = base::whole_seconds(base::file_time_of(entry));
  put_bytes(out, "target", entry.target());
  out["error_code"] = entry.error_code();
  out["error_name"] = entry.error_code() == 0 ? "" : error_name(entry.error_code());
  out["error"] = entry.error();
  return out;
}

Json preview_json(const std::string& path, NameEntry::Type type, uint64_t size_bytes) {
  Json out;
  out["path"] = path;
  out["type"] = type_name(type);
  if (!base::is_utf8(path)) out["path_bytes"] = hex(path);
  if (type == NameEntry::FILE) out["size_bytes"] = size_bytes;
  return out;
}

}  // namespace sluice::api
