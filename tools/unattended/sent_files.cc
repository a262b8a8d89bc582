// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/sent_files.h"

#include <algorithm>

#include "tools/unattended/words.h"

namespace sluice::unattended {
namespace {

std::string id_words(const FileId& id) {
  return std::to_string(id.device) + " " + std::to_string(id.inode) + " " + std::to_string(id.size) + " " +
         std::to_string(id.mtime_ns);
}

// Four words from `at` on.
std::optional<FileId> id_of(const std::vector<std::string_view>& words, size_t at) {
  const auto device = number_of<uint64_t>(words[at]);
  const auto inode = number_of<uint64_t>(words[at + 1]);
  const auto size = number_of<uint64_t>(words[at + 2]);
  const auto mtime_ns = number_of<int64_t>(words[at + 3]);
  if (!device || !inode || !size || !mtime_ns) return std::nullopt;
  return FileId{.device = *device, .inode = *inode, .size = *size, .mtime_ns = *mtime_ns};
}

std::string line(const char* word, uint64_t number, const std::string& rest) {
  return std::string(word) + " " + std::to_string(number) + " " + rest + "\n";
}

}  // namespace

SentFiles::Standing SentFiles::standing(const std::string& name, const FileId& id) const {
  const auto at = files_.find(name);
  if (at == files_.end()) return Standing::kNew;
  if (at->second.batch != 0) return at->second.id == id ? Standing::kUnderWay : Standing::kBusy;
  return at->second.id == id ? Standing::kArrived : Standing::kNew;
}

std::string SentFiles::batch_lines(uint64_t number, const Batch& batch,
                                   const std::map<std::string, File>& files) {
  std::string lines =
      line("batch", number, std::to_string(batch.unix_ns) + " " + std::to_string(batch.names.size()));
  for (const std::string& name : batch.names)
    lines += line("file", number, id_words(files.at(name).id) + " " + as_word(name));
  if (!batch.session.empty()) lines += line("session", number, as_word(batch.session));
  return lines;
}

uint64_t SentFiles::begin(const Files& files, int64_t unix_ns) {
  const uint64_t number = ++last_batch_;
  Batch& batch = batches_[number];
  batch.unix_ns = unix_ns;
  for (const auto& [name, id] : files) {
    batch.names.push_back(name);
    files_[name] = {.id = id, .batch = number};
  }
  lines_ += batch_lines(number, batch, files_);
  return number;
}

void SentFiles::runs_as(uint64_t batch, const std::string& session) {
  const auto at = batches_.find(batch);
  if (at == batches_.end()) return;
  at->second.session = session;
  lines_ += line("session", batch, as_word(session));
}

std::vector<std::string> SentFiles::arrived(uint64_t batch, const std::set<std::string>& missing,
                                            bool receipt) {
  const auto at = batches_.find(batch);
  if (at == batches_.end()) return {};
  std::vector<std::string> names;
  for (const std::string& name : at->second.names) {
    if (missing.contains(name)) {
      files_.erase(name);
      lines_ += line("missing", batch, as_word(name));
    } else {
      files_[name].batch = 0;
      files_[name].receipt = receipt;
      names.push_back(name);
    }
  }
  batches_.erase(at);
  lines_ += line("arrived", batch, receipt ? "1" : "0");
  return names;
}

std::vector<std::string> SentFiles::failed(uint64_t batch) {
  const auto at = batches_.find(batch);
  if (at == batches_.end()) return {};
  std::vector<std::string> names = std::move(at->second.names);
  for (const std::string& name : names) files_.erase(name);
  batches_.erase(at);
  lines_ += line("failed", batch, "");
  return names;
}

const FileId* SentFiles::with_receipt(const std::string& name) const {
  const auto at = files_.find(name);
  return at != files_.end() && at->second.batch == 0 && at->second.receipt ? &at->second.id : nullptr;
}

std::vector<std::string> SentFiles::all_with_receipt() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : files_) {
    if (file.batch == 0 && file.receipt) names.push_back(name);
  }
  return names;
}

void SentFiles::forget(const std::string& name) {
  const auto at = files_.find(name);
  if (at == files_.end() || at->second.batch != 0) return;
  files_.erase(at);
  lines_ += "forget " + as_word(name) + "\n";
}

void SentFiles::forget_unless(const std::function<bool(const std::string& name)>& is_there) {
  std::vector<std::string> gone;
  for (const auto& [name, file] : files_) {
    if (file.batch == 0 && !is_there(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) forget(name);
}

void SentFiles::set_folder(uint64_t inode) {
  folder_ = inode;
  lines_ += "folder " + std::to_string(inode) + "\n";
}

void SentFiles::set_to(const std::string& destination) {
  to_ = destination;
  lines_ += "to " + as_word(destination) + "\n";
}

bool SentFiles::is_first_line(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  return words.size() == 2 && words[0] == "folder" && number_of<uint64_t>(words[1]);
}

std::string SentFiles::take_lines() { return std::exchange(lines_, {}); }

std::string SentFiles::all_lines() const {
  std::string lines = "folder " + std::to_string(folder_) + "\n";
  if (!to_.empty()) lines += "to " + as_word(to_) + "\n";
  for (const auto& [name, file] : files_) {
    if (file.batch == 0) lines += line("sent", file.receipt ? 1 : 0, id_words(file.id) + " " + as_word(name));
  }
  for (const auto& [number, batch] : batches_) lines += batch_lines(number, batch, files_);
  return lines;
}

void SentFiles::read(std::string_view text) {
  for (const std::string_view one : lines_of(text)) read_line(one);
  std::vector<uint64_t> cut;
  for (const auto& [number, batch] : batches_) {
    if (batch.names.size() != expected_[number]) cut.push_back(number);
  }
  for (const uint64_t number : cut) (void)failed(number);
  expected_.clear();
  lines_.clear();  // the next reader comes to the same
}

void SentFiles::read_file(const std::vector<std::string_view>& words) {
  const auto number = number_of<uint64_t>(words[1]);
  const auto id = id_of(words, 2);
  const auto name = of_word(words[6]);
  if (!number || !id || !name) return;
  if (words[0] == "sent") {
    files_[*name] = {.id = *id, .batch = 0, .receipt = *number != 0};
  } else if (batches_.contains(*number)) {
    batches_[*number].names.push_back(*name);
    files_[*name] = {.id = *id, .batch = *number};
  }
}

void SentFiles::read_line(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 2) return;
  if ((words[0] == "file" || words[0] == "sent") && words.size() == 7) return read_file(words);
  if (words[0] == "forget") {
    if (const auto name = of_word(words[1])) forget(*name);
    lines_.clear();
    return;
  }
  if (words[0] == "to") {
    if (const auto to = of_word(words[1])) to_ = *to;
    return;
  }
  const auto number = number_of<uint64_t>(words[1]);
  if (!number) return;
  if (words[0] == "folder") folder_ = *number;
  if (words[0] == "batch" && words.size() == 4) {
    const auto unix_ns = number_of<int64_t>(words[2]);
    const auto count = number_of<size_t>(words[3]);
    if (!unix_ns || !count) return;
    batches_[*number] = {.unix_ns = *unix_ns, .session = {}, .names = {}};
    expected_[*number] = *count;
    last_batch_ = std::max(last_batch_, *number);
  }
  if (!batches_.contains(*number)) return;
  Batch& batch = batches_[*number];
  if (words[0] == "failed") (void)failed(*number);
  if (words[0] == "arrived" && words.size() == 3) (void)arrived(*number, {}, words[2] == "1");
  if (words.size() == 3 && (words[0] == "session" || words[0] == "missing")) {
    const auto word = of_word(words[2]);
    if (!word) return;
    if (words[0] == "session") {
      batch.session = *word;
    } else if (std::erase(batch.names, *word) != 0) {
      files_.erase(*word);
      --expected_[*number];
    }
  }
  lines_.clear();
}

}  // namespace sluice::unattended
