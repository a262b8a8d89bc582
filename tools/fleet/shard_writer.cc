// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/shard_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dataplane/base/counted.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"

namespace sluice::fleet {
namespace {

constexpr size_t kBufferBytes = 32U << 10;

// JSON's strings are TOML's basic strings, but for DEL.
std::string toml_string(const std::string& text) {
  std::string quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = quoted.find('\x7f'); at != std::string::npos; at = quoted.find('\x7f', at))
    quoted.replace(at, 1, "\\u007f");
  return quoted;
}

bool is_plain(std::string_view value) {
  if (value == "true" || value == "false") return true;
  const std::string_view digits = value.starts_with('-') ? value.substr(1) : value;
  const bool number =
      !digits.empty() && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return number && (digits.size() == 1 || digits.front() != '0') && digits.size() < 19;
}

}  // namespace

Result<std::string> make_set() {
  std::array<unsigned char, selection::kPartSetDigits / 2> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return Error{ErrorCode::kInternal, "the system gave no random bytes"};
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  return text;
}

std::string names_file(uint32_t shard, uint32_t session) {
  return fmt::format("{}-{}.names", shard_name(shard), session);
}

Status ShardWriter::add(uint32_t shard, uint64_t bytes, const std::vector<std::string>& names) {
  Open& open = open_[shard];
  size_t name_bytes = 0;
  for (const std::string& name : names) name_bytes += name.size();
  const bool large = bytes > limits_.large_file_bytes;
  const bool full = open.totals.sessions == 0 || open.names + names.size() > limits_.names ||
                    open.name_bytes + name_bytes > limits_.name_bytes ||
                    (large && open.large_files >= limits_.large_files) || open.bytes + bytes > limits_.bytes;
  if (full) {
    if (Status status = flush(shard); !status) return status;
    ++open.totals.sessions;
    open.names = open.name_bytes = open.large_files = 0;
    open.bytes = 0;
  }
  open.names += names.size();
  open.name_bytes += name_bytes;
  open.large_files += large ? 1 : 0;
  open.bytes += bytes;
  open.totals.names += names.size();
  open.totals.bytes += bytes;
  for (const std::string& name : names) open.buffer.append(name).push_back('\0');
  return open.buffer.size() < kBufferBytes ? Status() : flush(shard);
}

// The file counts as a name where its first range is.
void ShardWriter::add_range(uint32_t shard, uint64_t bytes, FileRange range) {
  Open& open = open_[shard];
  open.totals.names += selection::is_range(range.part) && range.part.offset == 0 ? 1 : 0;
  open.totals.bytes += bytes;
  ++open.totals.ranges;
  open.ranges.push_back(std::move(range));
}

Status ShardWriter::flush(uint32_t shard) {
  Open& open = open_[shard];
  if (open.buffer.empty()) return {};
  const std::filesystem::path path = directory_ / names_file(shard, open.totals.sessions);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0 || !base::write_all(file.get(), open.buffer.data(), open.buffer.size()))
    return Error{errno == ENOSPC || errno == EDQUOT ? ErrorCode::kNoSpace : ErrorCode::kConfiguration,
                 base::printable(path.string()) + ": cannot be written: " + std::strerror(errno)};
  open.buffer.clear();
  return {};
}

Status ShardWriter::finish() {
  for (uint32_t shard = 0; shard < open_.size(); ++shard) {
    if (Status status = flush(shard); !status) return status;
  }
  return {};
}

std::vector<ShardTotals> ShardWriter::totals() const {
  std::vector<ShardTotals> all;
  for (const Open& open : open_) all.push_back(open.totals);
  return all;
}

Result<std::string> option_line(std::string_view given) {
  const size_t equals = given.find('=');
  std::string key(given.substr(0, equals));
  std::ranges::replace(key, '-', '_');
  const bool good = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (equals == std::string_view::npos || !good)
    return Error{
        ErrorCode::kUsage,
        base::printable(given) + ": write an option as KEY=VALUE, with a key of 'sluice run --reference'"};
  const std::string value(given.substr(equals + 1));
  return key + " = " + (is_plain(value) ? value : toml_string(value));
}

std::string run_file_text(const Plan& plan, uint32_t shard, const ShardTotals& totals,
                          const RunOptions& options, const std::vector<FileRange>& ranges) {
  const bool sends = plan.at == Side::kFrom;
  const Place& other = plan.other_side(shard);
  const std::string own = plan.here().front().path + "/";
  const std::string peers = other.node + ":" + other.path + "/";
  std::string text = fmt::format(
      "# {} of the dataset {}: {}, {} bytes. Made by 'sluice fleet plan'; 'sluice run' takes it in this "
      "folder.\n"
      "together = false\n\n[options]\nmkdir = true\n",
      shard == 0 ? "What comes last" : fmt::format("Shard {} of {}", shard, plan.count()),
      base::printable(plan.dataset), base::counted(totals.names, "name"), totals.bytes);
  for (const std::string& line : options) text += line + "\n";
  for (const FileRange& range : ranges) {
    const std::string in = range.name.substr(0, range.name.rfind('/') + 1);  // without a slash: nothing
    text += fmt::format("\n[[{}]]\nsources = {}\npart = {}\nto = {}\n{}", sends ? "send" : "get",
                        toml_string((sends ? own : peers) + range.name),
                        toml_string(selection::file_part_text(range.part)),
                        toml_string((sends ? peers : own) + in), sends ? "" : "literal = true\n");
  }
  for (uint32_t session = 1; session <= totals.sessions; ++session) {
    text += fmt::format("\n[[{}]]\nsources = {}\nfiles_from = {}\nfrom0 = true\nto = {}\n",
                        sends ? "send" : "get", toml_string(sends ? own : peers),
                        toml_string(names_file(shard, session)), toml_string(sends ? peers : own));
  }
  return text;
}

}  // namespace sluice::fleet
