// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/probe_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "dataplane/base/write_all.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kStateSchema = "sluice.probe_state.v1";
constexpr size_t kStateBytesMax = 16U << 20;
constexpr double kDoubt = 0.05;

Error cannot_keep(const std::filesystem::path& file, const char* what) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return {full ? ErrorCode::kNoSpace : ErrorCode::kStorage,
          fmt::format("{}: {}: {}; name another place with --state", printable(file.string()), what,
                      std::strerror(errno))};
}

Result<std::string> read_all(int fd, const std::filesystem::path& file) {
  std::string text;
  std::array<char, 65536> block{};
  for (ssize_t got = 0; (got = ::read(fd, block.data(), block.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_keep(file, "cannot be read");
    text.append(block.data(), static_cast<size_t>(got));
    if (text.size() > kStateBytesMax) break;  // no state of ours: read_state says so
  }
  return text;
}

// The name may lead elsewhere by now: whoever had the lock before has replaced the file.
bool is_named(int fd, const std::filesystem::path& file) {
  struct stat open_one {};
  struct stat named {};
  return ::fstat(fd, &open_one) == 0 && ::stat(file.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace

double share_at_most(uint64_t wrong, uint64_t n) {
  if (n == 0) return 1;
  const auto count = static_cast<double>(n);
  if (wrong == 0) return std::min(1.0, 3 / count);
  // The mean of which as few as these, or fewer, come in one case of twenty.
  const auto chance_of_so_few = [wrong](double mean) {
    double chance = 0;
    for (uint64_t k = 0; k <= wrong; ++k)
      chance +=
          std::exp(static_cast<double>(k) * std::log(mean) - mean - std::lgamma(static_cast<double>(k) + 1));
    return chance;
  };
  double low = static_cast<double>(wrong);
  double high = low + 10 + 5 * std::sqrt(low);
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (chance_of_so_few(middle) > kDoubt ? low : high) = middle;
  }
  return std::min(1.0, high / count);
}

void put_found(const ProbeState& state, api::Json* out) {
  api::Json positions = api::Json::array();
  for (const auto& [offset, count] : state.positions) positions.push_back({offset, count});
  out->update({{"peer", state.peer},
               {"kind", state.kind},
               {"bytes", state.bytes},
               {"done", state.done},
               {"wrong", state.wrong},
               {"bytes_moved", state.bytes_moved},
               {"crc_errors", state.crc_errors},
               {"lost", state.lost},
               {"resent", state.resent},
               {"tried_again", state.tried_again},
               {"protection", state.protection},
               {"copies", state.copies},
               {"wrong_bytes", state.wrong_bytes},
               {"bits_set", state.bits_set},
               {"bits_cleared", state.bits_cleared},
               {"udp_checksum", state.udp_checksum},
               {"positions", std::move(positions)},
               {"elapsed_s", state.elapsed_s},
               {"began_unix_ns", state.began_unix_ns},
               {"faults", state.faults}});
}

std::string state_text(const ProbeState& state) {
  api::Json out{{"schema", kStateSchema},
                {"node_directory", state.node_directory},
                {"changed_unix_ns", state.changed_unix_ns}};
  put_found(state, &out);
  return api::to_line(out);
}

Result<ProbeState> read_state(const std::string& text) {
  const Error wrong{ErrorCode::kUsage, "no state of a probe; remove it, or name another with --state"};
  if (text.size() > kStateBytesMax) return wrong;
  const api::Json object = api::Json::parse(text, nullptr, false);
  if (!object.is_object() || object.value("schema", api::Json()) != kStateSchema) return wrong;
  bool good = true;
  const auto number = [&](const char* name) -> uint64_t {
    const auto found = object.find(name);
    good = good && found != object.end() && found->is_number_unsigned();
    return good ? found->get<uint64_t>() : 0;
  };
  const auto words = [&](const char* name) -> std::string {
    const auto found = object.find(name);
    good = good && found != object.end() && found->is_string();
    return good ? found->get<std::string>() : "";
  };
  ProbeState state;
  state.node_directory = words("node_directory");
  state.peer = words("peer");
  state.kind = words("kind");
  state.protection = words("protection");
  state.bytes = number("bytes");
  state.done = number("done");
  state.wrong = number("wrong");
  state.bytes_moved = number("bytes_moved");
  state.crc_errors = number("crc_errors");
  state.lost = number("lost");
  state.resent = number("resent");
  state.tried_again = number("tried_again");
  state.copies = number("copies");
  state.wrong_bytes = number("wrong_bytes");
  state.bits_set = number("bits_set");
  state.bits_cleared = number("bits_cleared");
  state.began_unix_ns = static_cast<int64_t>(number("began_unix_ns"));
  state.changed_unix_ns = static_cast<int64_t>(number("changed_unix_ns"));
  const auto checksum = object.find("udp_checksum");
  const auto positions = object.find("positions");
  good = good && checksum != object.end() && checksum->is_boolean() && positions != object.end() &&
         positions->is_array() && state.lost <= state.done;
  for (const api::Json& one : good ? *positions : api::Json::array()) {
    good = good && one.is_array() && one.size() == 2 && one[0].is_number_unsigned() &&
           one[1].is_number_unsigned();
    if (good) state.positions[one[0].get<uint32_t>()] = one[1].get<uint64_t>();
  }
  state.udp_checksum = good && checksum->get<bool>();
  const auto elapsed = object.find("elapsed_s");
  const auto faults = object.find("faults");
  if (!good || elapsed == object.end() || !elapsed->is_number() || elapsed->get<double>() < 0 ||
      faults == object.end() || !faults->is_array() || faults->size() > kFaultsKept ||
      state.wrong > state.done)
    return wrong;
  state.elapsed_s = elapsed->get<double>();
  state.faults = *faults;
  return state;
}

std::filesystem::path usual_probe_state_file(const std::string& peer, const std::string& kind) {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path directory;
  if (state != nullptr && *state == '/') {
    directory = state;
  } else if (home != nullptr && *home == '/') {
    directory = std::filesystem::path(home) / ".local/state";
  } else {
    return {};
  }
  std::string name = peer;
  std::replace(name.begin(), name.end(), '/', '_');
  return directory / "sluice" / fmt::format("integrity-{}-{}.json", name, kind);
}

Result<ProbeStateFile> ProbeStateFile::open(const std::filesystem::path& file) {
  std::error_code ignored;  // opening says it
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  while (true) {
    UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600));
    if (!fd) return cannot_keep(file, "cannot be opened");
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
      return Error{ErrorCode::kUsage,
                   printable(file.string()) + ": no regular file; name another with --state"};
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
      return Error{ErrorCode::kDestinationExists,
                   printable(file.string()) +
                       ": another probe uses it now; wait for its end, or name another with --state"};
    if (!is_named(fd.get(), file)) continue;
    Result<std::string> text = read_all(fd.get(), file);
    if (!text) return text.error();
    ProbeStateFile opened(file, std::move(fd));
    opened.text_ = std::move(*text);
    return opened;
  }
}

// The new file is locked before it has the name: nobody else gets hold of it in between.
Status ProbeStateFile::write(const std::string& text) {
  const std::filesystem::path fresh = file_.string() + ".new";
  UniqueFd fd(::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 ||
      !base::write_all(fd.get(), text.data(), text.size()) || ::fsync(fd.get()) != 0 ||
      ::rename(fresh.c_str(), file_.c_str()) != 0) {
    const Error error = cannot_keep(fresh, "cannot be written");
    ::unlink(fresh.c_str());
    return error;
  }
  const std::filesystem::path directory = file_.has_parent_path() ? file_.parent_path() : ".";
  if (const UniqueFd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); parent)
    ::fsync(parent.get());
  fd_ = std::move(fd);
  return {};
}

}  // namespace sluice::cli
