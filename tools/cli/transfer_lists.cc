// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/transfer_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <optional>
#include <set>
#include <variant>

#include "control/digests/named.h"
#include "dataplane/base/counted.h"
#include "tools/cli/format.h"
#include "tools/cli/local_files.h"
#include "tools/cli/receipt_list.h"

namespace sluice::cli {
namespace {

std::string last_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

template <typename Request>
std::vector<std::string> sources_of(const Request& request) {
  return {request.sources().begin(), request.sources().end()};
}

digests::Values values_of(const api::NameDigests& name) {
  digests::Values values;
  for (const api::Digest& digest : name.digests()) {
    if (const auto kind = digests::kind_named(digest.kind()))
      values.push_back({.kind = *kind, .hex = digest.hex()});
  }
  return values;
}

constexpr char kNoBag[] =
    "has no directory 'data' with a file, so it is no bag; send the bag's own directory, or give another "
    "--manifest-format";

Error in_list(const std::string& name, const Error& error) {
  return {error.code, "--manifest " + printable(name) + ": " + error.message};
}

// All entries, those of one name together. The kind is of values of which neither the line nor the length
// says it.
Result<std::vector<manifest::Entry>> read_entries(const std::string& text, const std::string& name,
                                                  std::optional<digests::Kind> kind, bool* bag) {
  manifest::ListReader reader(name, kind);
  std::vector<manifest::Entry> entries;
  std::map<std::string, size_t, std::less<>> places;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    auto entry = reader.line(std::string_view(text).substr(at, end - at));
    at = end + 1;
    if (!entry) return entry.error();
    if (!entry->has_value()) continue;
    const auto [place, is_new] = places.emplace((*entry)->name, entries.size());
    if (is_new) {
      entries.push_back(std::move(**entry));
      continue;
    }
    digests::Values& known = entries[place->second].values;
    for (const digests::Value& value : (*entry)->values) {
      const auto same = std::ranges::find(known, value.kind, &digests::Value::kind);
      if (same == known.end()) {
        known.push_back(value);
      } else if (same->hex != value.hex) {
        return Error{ErrorCode::kUsage,
                     printable((*entry)->name) + ": is in the list with two digests that differ"};
      }
    }
  }
  *bag = reader.format() == manifest::Format::kBagit;
  return entries;
}

}  // namespace

Result<TransferLists> TransferLists::of(const TransferFlags& flags, const Context& context,
                                        std::istream* input, api::TransferRequest* request) {
  const Environment& environment = context.environment;
  TransferLists lists;
  if (flags.manifest.empty() && flags.write_manifest.empty()) return lists;
  api::TransferOptions* const options =
      std::visit([](auto& each) { return each.mutable_options(); }, *request);
  const std::vector<std::string> sources =
      std::visit([](const auto& each) { return sources_of(each); }, *request);
  if (!flags.manifest.empty()) {
    const bool standard = is_standard(flags.manifest);
    if (standard && (input == nullptr || is_standard(flags.files_from) || is_standard(flags.paths.front())))
      return Error{ErrorCode::kUsage, "--manifest -: stdin is not read here; name a file"};
    std::ifstream file;
    if (!standard) {
      file.open(environment.working_directory / flags.manifest, std::ios::binary);
      (void)file.peek();  // a directory opens, and fails here
      if (!file.is_open() || file.bad())
        return Error{ErrorCode::kUsage,
                     "--manifest " + printable(flags.manifest) + ": cannot be opened; check the name"};
    }
    const auto kinds = digests::kinds_of(flags.digest.empty() ? 0 : options->digests());
    if (Status status =
            lists.read(context, standard ? *input : file, flags.manifest, kinds, sources, options);
        !status)
      return status.error();
  }
  if (!flags.write_manifest.empty()) {
    lists.write_.list = environment.working_directory / flags.write_manifest;
    if (is_standard(flags.write_manifest)) {
      if (Status free = context.check_stdout_is_free("--write-manifest -"); !free) return free.error();
      lists.write_.list = flags.write_manifest;
      lists.write_.out = &environment.out;
    }
    lists.write_.kinds = digests::kinds_of(options->digests());
    lists.write_.replace = flags.overwrite_given();
    lists.write_.format = lists.write_.kinds.size() > 1 ? manifest::Format::kTag : manifest::Format::kSum;
    if (!flags.manifest_format.empty()) {
      const auto format = manifest::format_named(flags.manifest_format);
      if (!format)
        return Error{ErrorCode::kUsage, "--manifest-format " + printable(flags.manifest_format) +
                                            ": no format; use sum, tag, bagit or hashdeep"};
      lists.write_.format = *format;
    }
    if (sources.size() == 1 && !sources.front().ends_with('/'))
      lists.bag_prefix_ = last_of(sources.front()) + "/";
    if (Status status = manifest::check_format(lists.write_.format, lists.write_.kinds); !status)
      return status.error();
    if (Status status = manifest::check_place(lists.write_); !status)
      return Error{status.error().code, "--write-manifest " + status.error().message};
  }
  return lists;
}

Status TransferLists::check_names(const Context& context, api::Client& client,
                                  const api::TransferRequest& request) const {
  const auto* const send = std::get_if<api::SendRequest>(&request);
  const bool any_name =
      write_.format != manifest::Format::kBagit && write_.format != manifest::Format::kHashdeep;
  if (write_.list.empty() || any_name || send == nullptr || !send->from().empty()) return {};
  bool one = false;
  Status possible;
  const Status looked = preview_transfer(context, client, *send, [&](const api::PreviewReply& part) {
    for (const api::PreviewEntry& entry : part.entries()) {
      const std::optional<std::string> name = listed_as(entry.path());
      if (!name || !entry.missing().empty() || entry.type() != api::NameEntry::FILE || !possible) continue;
      one = true;
      possible = manifest::check_name(write_.format, write_.list.native(), *name);
    }
  });
  if (!looked) return looked;
  if (possible && !one && write_.format == manifest::Format::kBagit)
    return Error{ErrorCode::kUsage, printable(send->sources(0)) + ": " + kNoBag};
  return possible;
}

std::optional<std::string> TransferLists::listed_as(const std::string& path) const {
  if (write_.format != manifest::Format::kBagit) return path;
  const bool within = !bag_prefix_.empty() && path.starts_with(bag_prefix_);
  std::string name = within ? path.substr(bag_prefix_.size()) : path;
  return name.starts_with("data/") ? std::optional(std::move(name)) : std::nullopt;
}

Status TransferLists::read(const Context& context, std::istream& list, const std::string& name,
                           const std::vector<digests::Kind>& kinds, const std::vector<std::string>& sources,
                           api::TransferOptions* options) {
  constexpr size_t kListBytesMax = 4 * digests::kExpectedBytesMax;
  std::string text;
  std::vector<char> part(64U << 10);
  while (list.read(part.data(), static_cast<std::streamsize>(part.size())) || list.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(list.gcount()));
    if (text.size() > kListBytesMax)
      return in_list(
          name, {ErrorCode::kUsage, fmt::format("longer than {} MiB; compare what has arrived by 'sluice "
                                                "verify --against'",
                                                kListBytesMax >> 20)});
  }
  // One kind that was named may be that of the list, where its name does not say; if it cannot be, the list
  // is of another.
  Result<std::vector<manifest::Entry>> entries = Error{ErrorCode::kUsage, ""};
  const bool receipt = looks_like_receipt(text);
  if (receipt) entries = entries_of_receipt(context, text, sources);
  if (receipt && !entries) return in_list(name, entries.error());
  if (!receipt && kinds.size() == 1 && !manifest::ListReader(name, std::nullopt).name_tells())
    entries = read_entries(text, name, kinds.front(), &bag_);
  if (!entries) entries = read_entries(text, name, std::nullopt, &bag_);
  if (!entries) return entries.error();
  if (entries->empty())
    return in_list(name, {ErrorCode::kUsage, "has no line with a digest; check the file"});
  checks_ = true;
  entries_ = std::move(*entries);
  digests::Mask mask = options->digests();
  for (size_t i = 0; i < entries_.size(); ++i) {
    for (const digests::Value& value : entries_[i].values) mask |= digests::bit_of(value.kind);
  }
  for (const manifest::Entry& entry : entries_) expect(entry, sources);
  options->set_digests(mask);
  const auto put = [&](const std::string& path, const manifest::Entry& entry) {
    api::NameDigests* const one = options->add_expected();
    one->set_path(path);
    for (const digests::Value& value : entry.values) {
      api::Digest* const digest = one->add_digests();
      digest->set_kind(std::string(name_of(value.kind)));
      digest->set_hex(value.hex);
    }
  };
  for (const auto& [path, number] : first_) put(path, entries_[number]);
  for (const auto& [path, number] : second_) {
    if (!first_.contains(path)) put(path, entries_[number]);
  }
  return {};
}

// Names of a list begin in the directory that is sent, or beside what is sent; or are absolute.
void TransferLists::expect(const manifest::Entry& entry, const std::vector<std::string>& sources) {
  const auto number = static_cast<size_t>(&entry - entries_.data());
  std::string name = entry.name;
  while (name.starts_with("./")) name.erase(0, 2);
  const std::string only = sources.size() == 1 ? sources.front() : "";
  for (const std::string& source : sources) {
    if (!name.starts_with('/')) break;
    if (name == source) name = last_of(source);
    const std::string beneath = source.ends_with('/') ? source : source + "/";
    if (!name.starts_with(beneath)) continue;
    name = (source.ends_with('/') ? "" : last_of(source) + "/") + name.substr(beneath.size());
    first_.emplace(name, number);
    return;
  }
  if (!only.empty() && !only.ends_with('/') && name != last_of(only)) {
    first_.emplace(last_of(only) + "/" + name, number);
    second_.emplace(std::move(name), number);
  } else {
    first_.emplace(std::move(name), number);
  }
}

Result<TransferLists::Outcome> TransferLists::finish(api::Client& client, const api::Session& session) const {
  std::vector<api::NameDigests> arrived;
  const Status asked =
      client.digests(session.id(), [&](const api::NameDigests& name) { arrived.push_back(name); });
  if (!asked) return asked.error();
  Outcome outcome;
  if (checks_) compare(arrived, session, &outcome);
  if (!write_.list.empty()) {
    if (Status status = write(arrived, session, &outcome); !status) return status.error();
  }
  return outcome;
}

void TransferLists::compare(const std::vector<api::NameDigests>& arrived, const api::Session& session,
                            Outcome* outcome) const {
  std::set<size_t> seen;
  size_t good = 0, differs = 0, extra = 0;
  api::Json findings = api::Json::array();
  const auto tell = [&](const std::string& name, std::string_view problem, const std::string& reason) {
    outcome->text += fmt::format("{}: {}{}\n", printable(name), problem, reason.empty() ? "" : ": " + reason);
    findings.push_back({{"name", printable(name)}, {"problem", problem}, {"reason", reason}});
  };
  for (const api::NameDigests& name : arrived) {
    auto entry = first_.find(name.path());
    if (entry == first_.end()) {
      entry = second_.find(name.path());
      if (entry == second_.end()) {
        if (bag_ && name.path().find("data/") == std::string::npos) continue;
        ++extra;
        tell(name.path(), "extra", "not in the list");
        continue;
      }
    }
    seen.insert(entry->second);
    const std::string difference = digests::difference(entries_[entry->second].values, values_of(name));
    if (difference.empty()) {
      ++good;
    } else {  // a hard link, which was given before anybody compared it
      ++differs;
      tell(name.path(), "differs", difference);
    }
  }
  // Names that failed are told by the session, with the reason; those that are not as listed are in the list.
  const std::string unlike = "a digest of it is not that of the list";
  for (const api::MissingName& missing : session.names().missing()) {
    const auto entry = first_.find(missing.path());
    if (missing.arrived() || entry == first_.end() || !seen.insert(entry->second).second) continue;
    const bool other = missing.reason().starts_with(unlike);
    differs += other ? 1 : 0;
    tell(missing.path(), other ? "differs" : "missing", other ? unlike : missing.reason());
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!seen.contains(i)) tell(entries_[i].name, "missing", "did not come");
  }
  const size_t missing = entries_.size() - good - differs;
  outcome->text +=
      fmt::format("list: {} good, {} differ, {} missing, {} extra\n", good, differs, missing, extra);
  outcome->object["manifest"] = {{"good", good},
                                 {"differs", differs},
                                 {"missing", missing},
                                 {"extra", extra},
                                 {"problems", std::move(findings)}};
  if (differs + missing == 0) return;
  outcome->exit_code = static_cast<int>(ErrorCode::kIntegrity);
  outcome->text += fmt::format(
      "sluice: of the list's {} names {} did not come and {} differ: compare the list with the source, and "
      "send them again\n",
      entries_.size(), missing, differs);
}

Status TransferLists::write(const std::vector<api::NameDigests>& arrived, const api::Session& session,
                            Outcome* outcome) const {
  std::vector<manifest::Entry> entries;
  api::Json left_out = api::Json::array();
  const bool one = session.files_size() == 1 && session.files(0).names() == 1;
  for (const api::NameDigests& name : arrived) {
    manifest::Entry entry{.name = name.path(), .size_bytes = name.size(), .values = {}, .line = 0};
    // A file by itself may have got another name than it was sent under.
    if (one && name.path().find('/') == std::string::npos)
      entry.name = last_of(session.files(0).destination());
    for (const digests::Value& value : values_of(name)) {
      if (std::ranges::find(write_.kinds, value.kind) != write_.kinds.end()) entry.values.push_back(value);
    }
    std::optional<std::string> listed = listed_as(entry.name);
    if (entry.values.empty() || !listed) continue;
    entry.name = std::move(*listed);
    if (Status status = manifest::check_name(write_.format, write_.list.native(), entry.name); !status) {
      left_out.push_back(printable(entry.name));
      outcome->text += "sluice: not in the list: " + printable(status.error().message) + "\n";
      continue;
    }
    entries.push_back(std::move(entry));
  }
  const size_t count = entries.size();
  const bool no_bag = count == 0 && left_out.empty() && write_.format == manifest::Format::kBagit;
  if (no_bag)
    return Error{ErrorCode::kPartial, std::string("all has arrived, and there is no list: it ") + kNoBag};
  if (Status status = manifest::write_entries(write_, std::move(entries)); !status) return status;
  if (!left_out.empty() && outcome->exit_code == 0)
    outcome->exit_code = static_cast<int>(ErrorCode::kPartial);
  outcome->object["write_manifest"] = {
      {"list", printable(write_.list.string())}, {"files", count}, {"left_out", std::move(left_out)}};
  return {};
}

}  // namespace sluice::cli
