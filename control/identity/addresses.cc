// SPDX-License-Identifier: Apache-2.0
#include "control/identity/addresses.h"

#include <mutex>
#include <optional>

#include "control/identity/list_file.h"
#include "control/identity/node_files.h"
#include "dataplane/base/config/config.h"

namespace sluice::identity {
namespace {

constexpr ListFile kAddressesFile = {
    .key = "addresses_file", .bytes_max = Addresses::kBytesMax, .content = "names and addresses"};

// With the usual port where there is none.
Result<std::string> with_port(std::string_view address) {
  const bool bracketed = address.starts_with('[');
  const bool has_port = bracketed ? !address.ends_with(']') : address.find(':') != std::string_view::npos;
  const std::string whole =
      std::string(address) + (has_port ? "" : ":" + std::to_string(config::kControlPort));
  const auto split = config::parse_host_port(whole);
  if (!split) return split.error();
  if (split->port == 0) return configuration("port 0 cannot be called; name the peer's real port");
  return whole;
}

}  // namespace

Addresses Addresses::parse(std::string_view text, const std::string& origin) {
  Addresses found;
  std::map<std::string, size_t> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    std::string_view line = next_line(&text);
    line = line.substr(0, line.find('#'));
    const std::string_view name = next_word(&line);
    const std::string_view address = next_word(&line);
    if (name.empty()) continue;
    const auto wrong = [&](const std::string& why) {
      if (found.problems_.size() < kProblemsMax)
        found.problems_.push_back(configuration(origin + ":" + std::to_string(number) + ": " + why));
    };
    if (!config::valid_node_name(name)) {
      wrong("'" + shown_word(name) + "' is no node name; use a-z, 0-9, _ and -");
    } else if (address.empty() || !next_word(&line).empty()) {
      wrong("a line has a name and an address, such as: beta beta.example.org:7400");
    } else if (const auto known = lines.find(std::string(name)); known != lines.end()) {
      wrong(std::string(name) + " stands in line " + std::to_string(known->second) +
            " already, which counts; remove one of them");
    } else if (const Result<std::string> whole = with_port(address); !whole) {
      wrong(whole.error().message);
    } else {
      lines[std::string(name)] = number;
      found.all_[std::string(name)] = *whole;
    }
  }
  return found;
}

Result<std::shared_ptr<const Addresses>> Addresses::load(const std::filesystem::path& file) {
  // Each call of a peer asks for it.
  static struct {
    std::mutex mutex;
    std::filesystem::path file;
    Stamp stamp;
    std::shared_ptr<const Addresses> addresses;
  } last;
  const std::scoped_lock lock(last.mutex);
  const bool known = last.addresses && last.file == file;
  const auto read = read_list_file(file, kAddressesFile, known ? std::optional(last.stamp) : std::nullopt);
  if (!read) return read.error();
  if (!read->has_value()) return last.addresses;
  last.addresses = std::make_shared<const Addresses>(parse((*read)->text, file.string()));
  last.file = file;
  last.stamp = (*read)->stamp;
  return last.addresses;
}

std::string Addresses::find(const std::string& name) const {
  const auto at = all_.find(name);
  return at == all_.end() ? "" : at->second;
}

}  // namespace sluice::identity
