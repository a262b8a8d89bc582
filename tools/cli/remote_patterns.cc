// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/remote_patterns.h"

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/names/glob.h"
#include "tools/cli/format.h"
#include "tools/cli/names_format.h"

namespace sluice::cli {
namespace {

using Sources = google::protobuf::RepeatedPtrField<std::string>;

constexpr size_t kSourcesBytesMax = 8U << 20;  // of one session: a request of gRPC holds them

// The files of one pattern.
class Fitting {
 public:
  explicit Fitting(const std::string& pattern)
      : pattern_(pattern), base_(names::split_pattern(pattern).base) {}

  // False: no more is wanted.
  bool take(const api::ListNamesReply& part) {
    for (const api::NameEntry& entry : part.entries()) {
      if (!problem_) take(entry);
    }
    return !problem_.has_value();
  }
  const std::optional<Error>& problem() const { return problem_; }
  std::vector<std::string>& files() { return files_; }
  uint64_t left_out() const { return left_out_; }
  const std::vector<std::string>& unnameable() const { return unnameable_; }

 private:
  void take(const api::NameEntry& entry) {
    const std::string path = base_ + (base_.ends_with('/') ? "" : "/") + entry.path();
    if (entry.error_code() != 0) {
      problem_ = Error{static_cast<ErrorCode>(entry.error_code()), entry.error()};
    } else if (entry.type() != api::NameEntry::FILE) {
      ++left_out_;
    } else if (!is_utf8(path)) {
      unnameable_.push_back(escaped(path));
    } else if (bytes_ += path.size(); bytes_ > kSourcesBytesMax) {
      problem_ =
          Error{ErrorCode::kUsage, escaped(pattern_) + ": too many files for one session; get them by parts"};
    } else {
      files_.push_back(path);
    }
  }

  const std::string& pattern_;
  const std::string base_;
  std::vector<std::string> files_;
  std::vector<std::string> unnameable_;
  std::optional<Error> problem_;
  uint64_t left_out_ = 0;
  size_t bytes_ = 0;
};

// A file or directory whose name is that very text, "[a]" for one: as a shell takes a pattern that fits
// nothing.
bool is_a_name(api::Client& client, const std::string& peer, const std::string& path) {
  const auto found = client.look_at(peer, path);
  return found && found->has_value() &&
         ((*found)->type() == api::NameEntry::FILE || (*found)->type() == api::NameEntry::DIRECTORY);
}

Status replace_one(api::Client& client, const std::string& node, const std::string& pattern, Sources& sources,
                   std::vector<std::string>* unnameable, std::ostream& err) {
  api::ListNamesRequest list;
  list.set_peer(node);
  list.set_path(pattern);
  list.set_glob(true);
  Fitting fitting(pattern);
  const Status status =
      client.list_names(list, [&fitting](const api::ListNamesReply& part) { return fitting.take(part); });
  if (fitting.problem()) return *fitting.problem();
  const bool none = fitting.files().empty() && fitting.unnameable().empty() &&
                    (status || status.error().code == ErrorCode::kSourceUnreadable);
  if (none && is_a_name(client, node, pattern)) {
    *sources.Add() = pattern;
    return {};
  }
  if (!status) return status.error();
  const std::string shown = node + ":" + escaped(pattern);
  for (const std::string& name : fitting.unnameable()) {
    err << "sluice: " << node << ":" << name
        << ": left out, as its name is no UTF-8; send the directory that it is in\n";
    unnameable->push_back(name);
  }
  if (fitting.files().empty())
    return Error{ErrorCode::kSourceUnreadable, shown + ": no file fits; look with 'sluice ls'"};
  for (std::string& file : fitting.files()) *sources.Add() = std::move(file);
  if (fitting.left_out() != 0)
    err << "sluice: " << shown << ": left out what fits and is no file: " << fitting.left_out() << "\n"
        << std::flush;
  return {};
}

}  // namespace

Result<std::vector<std::string>> replace_patterns(api::Client& client, const TransferFlags& flags,
                                                  api::TransferRequest& request, std::ostream& err) {
  std::vector<std::string> unnameable;
  auto* const get = std::get_if<api::GetRequest>(&request);
  auto* const send = std::get_if<api::SendRequest>(&request);
  const std::string node = get != nullptr ? get->peer() : send->from();
  if (node.empty() || flags.literal) return unnameable;  // the shell has done it
  Sources& sources = get != nullptr ? *get->mutable_sources() : *send->mutable_sources();
  const std::vector<std::string> written(sources.begin(), sources.end());
  sources.Clear();
  for (const std::string& source : written) {
    if (!names::is_pattern(source)) {
      *sources.Add() = source;
    } else if (Status status = replace_one(client, node, source, sources, &unnameable, err); !status) {
      return status.error();
    }
  }
  return unnameable;
}

}  // namespace sluice::cli
