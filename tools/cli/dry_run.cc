// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/dry_run.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/selection/choice.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/path.h"
#include "tools/cli/format.h"
#include "tools/cli/local_files.h"
#include "tools/cli/names_format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

constexpr size_t kMissingShown = 1000;

bool is_folder(api::NameEntry::Type type) { return type == api::NameEntry::DIRECTORY; }

// Prints as it comes: a million names are not kept.
class PreviewPrinter {
 public:
  explicit PreviewPrinter(const Context& context)
      : out_(context.environment.out), err_(context.environment.err), json_(context.json) {}

  void would_arrive(const std::string& path, api::NameEntry::Type type, uint64_t size) {
    if (json_) {
      std::string line = api::to_line(api::preview_json(path, type, size));
      line.pop_back();
      out_ << (names_ == 0 ? kHead : ",") << line;
    } else {
      out_ << escaped(path) << (is_folder(type) ? "/\n" : "\n");
    }
    ++names_;
    if (type == api::NameEntry::FILE) bytes_ += size;
  }

  void would_not(const std::string& path, const std::string& reason, bool left_out) {
    ++(left_out ? left_out_ : failed_);
    if (json_) {
      if (missing_.size() < kMissingShown) missing_.push_back({{"path", escaped(path)}, {"reason", reason}});
    } else {
      err_ << "sluice: would be missing: " << escaped(path) << ": " << printable(reason) << "\n";
    }
  }

  bool anything() const { return names_ + failed_ + left_out_ != 0; }

  // `error`: with which it ended early.
  int end(const std::optional<Error>& error) {
    if (error) err_ << "sluice: " << printable(error->message) << "\n";
    if (json_) {
      api::Json rest = {{"names", names_},       {"bytes", bytes_},     {"failed", failed_},
                        {"left_out", left_out_}, {"missing", missing_}, {"complete", !error.has_value()}};
      if (error) rest["error"] = api::error_json(*error);
      out_ << (names_ == 0 ? kHead : "") << "]," << api::to_line(rest).substr(1);
    } else {
      err_ << fmt::format("sluice: {} of {} would be sent, {} would fail, {} would be left out\n",
                          base::counted(names_, "name"), format_bytes(bytes_), failed_, left_out_);
    }
    out_.flush();
    err_.flush();
    if (error) return static_cast<int>(error->code);
    return failed_ == 0 ? 0 : static_cast<int>(ErrorCode::kPartial);
  }

 private:
  static constexpr const char* kHead = "{\"schema\":\"sluice.preview.v1\",\"entries\":[";

  std::ostream& out_;
  std::ostream& err_;
  const bool json_;
  uint64_t names_ = 0;
  uint64_t bytes_ = 0;
  uint64_t failed_ = 0;
  uint64_t left_out_ = 0;
  api::Json missing_ = api::Json::array();
};

Status preview_send(const Context& context, api::Client& client, const api::SendRequest& request,
                    PreviewPrinter& printer) {
  return preview_transfer(context, client, request, [&printer](const api::PreviewReply& part) {
    for (const api::PreviewEntry& entry : part.entries()) {
      if (entry.missing().empty()) {
        printer.would_arrive(entry.path(), entry.type(), entry.size());
      } else {
        printer.would_not(entry.path(), entry.missing(), entry.left_out());
      }
    }
  });
}

// One source of a `get`: its names come from the other node, a directory before what is in it.
class PreviewedSource {
 public:
  PreviewedSource(std::string path, const selection::Choice& choice, PreviewPrinter& printer)
      : path_(std::move(path)), choice_(choice), printer_(printer) {
    if (choice.names() == nullptr) name_ = base::arriving_name(path_);
  }

  void take(const api::ListNamesReply& part) {
    for (const api::NameEntry& entry : part.entries()) take(entry);
  }

  void end() {
    if (!is_file_) begin_directory();
    if (choice_.names() == nullptr) return;
    for (std::string name : choice_.names()->names()) {
      if (name.ends_with('/')) name.pop_back();
      if (name != "." && !found_.contains(name)) printer_.would_not(name, "is not there", false);
    }
  }

 private:
  void take(const api::NameEntry& entry) {
    if (entry.path().empty()) {
      is_file_ = !is_folder(entry.type());
      if (is_file_) one(path_.substr(path_.rfind('/') + 1), entry);
      return;
    }
    begin_directory();
    one(name_.empty() ? entry.path() : name_ + "/" + entry.path(), entry);
  }

  // Its own name comes with none of the entries.
  void begin_directory() {
    if (std::exchange(begun_, true) || name_.empty() || !choice_.reaches(name_, true)) return;
    printer_.would_arrive(name_, api::NameEntry::DIRECTORY, 0);
  }

  void one(const std::string& path, const api::NameEntry& entry) {
    const bool directory = is_folder(entry.type());
    if (choice_.names() != nullptr && choice_.names()->has(path)) found_.insert(path);
    if (!choice_.reaches(path, directory)) return;
    if (entry.error_code() != 0) return printer_.would_not(path, entry.error(), false);
    // Of a list: it is made only with something in it.
    if (directory && choice_.names() != nullptr && !choice_.lists(path, true)) {
      on_the_way_.push_back(path);
      return;
    }
    for (const std::string& each : on_the_way_) {
      if (path.starts_with(each + "/")) printer_.would_arrive(each, api::NameEntry::DIRECTORY, 0);
    }
    on_the_way_.clear();
    if (directory || entry.type() == api::NameEntry::FILE || entry.type() == api::NameEntry::LINK)
      return printer_.would_arrive(path, entry.type(), entry.size());
    printer_.would_not(path, "is a device, a pipe or a socket", true);
  }

  const std::string path_;
  const selection::Choice& choice_;
  PreviewPrinter& printer_;
  std::string name_;
  bool is_file_ = false;
  bool begun_ = false;
  std::vector<std::string> on_the_way_;
  std::set<std::string, std::less<>> found_;  // of the list
};

Status preview_get(api::Client& client, const api::GetRequest& request, PreviewPrinter& printer) {
  const selection::Selection selection = selection::selection_of(request.options());
  if (Status status = check_selection(selection, static_cast<size_t>(request.sources_size())); !status)
    return status;
  const Result<selection::Choice> choice = selection::Choice::make(selection);
  if (!choice) return choice.error();
  for (const std::string& path : request.sources()) {
    if (api::is_memory_source(path)) {
      const auto bytes = config::parse_size(std::string_view(path).substr(api::kMemorySource.size()));
      if (!bytes) return bytes.error();
      printer.would_arrive(fmt::format("memory-{}", *bytes), api::NameEntry::FILE, *bytes);
      continue;
    }
    api::ListNamesRequest list;
    list.set_peer(request.peer());
    list.set_path(path);
    list.set_recursive(true);
    PreviewedSource source(path, *choice, printer);
    const Status status = client.list_names(list, [&source](const api::ListNamesReply& part) {
      source.take(part);
      return true;
    });
    if (!status) return status;
    source.end();
  }
  if (printer.anything()) return {};
  return Error{ErrorCode::kUsage,
               "nothing to send: the rules or the list leave nothing of it, or it is empty"};
}

}  // namespace

Result<int> dry_run(const Context& context, api::Client& client, const api::TransferRequest& request) {
  PreviewPrinter printer(context);
  const auto* const sends = std::get_if<api::SendRequest>(&request);
  const Status status = sends != nullptr ? preview_send(context, client, *sends, printer)
                                         : preview_get(client, std::get<api::GetRequest>(request), printer);
  if (!status && !printer.anything()) return status.error();
  return printer.end(status ? std::nullopt : std::optional(status.error()));
}

}  // namespace sluice::cli
