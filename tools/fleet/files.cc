// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "dataplane/base/read_rest.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"

namespace sluice::fleet {
namespace {

constexpr uint64_t kFileBytesMax = 1U << 30;

std::string shown(const std::filesystem::path& path) { return base::printable(path.string()); }

}  // namespace

Error cannot_be(const std::filesystem::path& path, const char* what) {
  const ErrorCode code = errno == ENOSPC || errno == EDQUOT ? ErrorCode::kNoSpace : ErrorCode::kConfiguration;
  return {code, shown(path) + ": cannot be " + what + ": " + std::strerror(errno)};
}

Result<std::string> read_file(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return cannot_be(path, "read");
  if (static_cast<uint64_t>(info.st_size) > kFileBytesMax)
    return Error{ErrorCode::kConfiguration, shown(path) + ": is longer than a file of a plan can be"};
  std::ifstream in(path, std::ios::binary);
  std::string text = base::read_rest(in);  // a directory opens, and fails here
  if (!in.is_open() || in.bad()) return cannot_be(path, "read");
  return text;
}

Result<Json> read_json(const std::filesystem::path& path, std::string_view schema) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  Json object = Json::parse(*text, nullptr, false);
  if (!object.is_object() || object.value("schema", Json()) != schema)
    return Error{ErrorCode::kConfiguration, shown(path) + ": is no object of schema " + std::string(schema) +
                                                "; it was changed, or is of another version"};
  return object;
}

Status write_file(const std::filesystem::path& path, std::string_view text, uint32_t mode) {
  const std::filesystem::path unfinished = path.string() + "." + std::to_string(::getpid()) + ".tmp";
  const UniqueFd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (file.get() < 0) return cannot_be(unfinished, "written");
  if (base::write_all(file.get(), text.data(), text.size()) && ::fsync(file.get()) == 0 &&
      ::rename(unfinished.c_str(), path.c_str()) == 0)
    return {};
  const Error error = cannot_be(path, "written");
  ::unlink(unfinished.c_str());
  return error;
}

Status write_json(const std::filesystem::path& path, const Json& object) {
  return write_file(path, object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace sluice::fleet
