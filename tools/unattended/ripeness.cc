// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/ripeness.h"

#include <algorithm>

namespace sluice::unattended {

Ripeness::File& Ripeness::file(const std::string& name, int64_t now_ns) {
  const auto [at, fresh] = files_.try_emplace(name);
  if (fresh) {
    at->second.since_ns = now_ns;
    at->second.due_ns = kNever;
  }
  return at->second;
}

void Ripeness::place(const std::string& name, File& file) {
  order_.erase({file.due_ns, name});
  const bool waits_for_news = file.open || (rule_.marked_only && !file.marked) || !file.known;
  const int64_t ripe_ns = file.marked ? file.since_ns : file.since_ns + rule_.quiet_ns;
  file.due_ns = waits_for_news ? kNever : std::max(ripe_ns, file.not_before_ns);
  if (file.due_ns != kNever) order_.insert({file.due_ns, name});
}

void Ripeness::seen(const std::string& name, const FileId& id, int64_t now_ns) {
  File& one = file(name, now_ns);
  if (!one.known || one.id != id) one.since_ns = now_ns;
  one.known = true;
  one.id = id;
  place(name, one);
}

void Ripeness::opened(const std::string& name, int64_t now_ns) {
  File& one = file(name, now_ns);
  one.open = true;
  place(name, one);
}

void Ripeness::closed(const std::string& name, const FileId& id, int64_t now_ns) {
  File& one = file(name, now_ns);
  one.open = false;
  one.known = true;
  one.id = id;
  one.since_ns = now_ns;
  place(name, one);
}

void Ripeness::marked(const std::string& name, int64_t now_ns) {
  File& one = file(name, now_ns);
  if (one.marked) return;
  one.marked = true;
  one.open = false;
  one.since_ns = now_ns;
  place(name, one);
}

void Ripeness::later(const std::string& name, int64_t due_ns) {
  File& one = file(name, 0);
  one.not_before_ns = due_ns;
  place(name, one);
}

void Ripeness::gone(const std::string& name) {
  const auto at = files_.find(name);
  if (at == files_.end()) return;
  order_.erase({at->second.due_ns, name});
  files_.erase(at);
}

bool Ripeness::is_open(const std::string& name) const {
  const auto at = files_.find(name);
  return at != files_.end() && at->second.open;
}

void Ripeness::lost_count() {
  for (auto& [name, one] : files_) {
    one.open = false;
    place(name, one);
  }
}

std::vector<std::string> Ripeness::ripe(int64_t now_ns, size_t most) const {
  std::vector<std::string> names;
  for (const auto& [due_ns, name] : order_) {
    if (due_ns > now_ns || names.size() >= most) break;
    names.push_back(name);
  }
  return names;
}

bool Ripeness::confirm(const std::string& name, const FileId& id, int64_t now_ns) {
  const auto at = files_.find(name);
  if (at == files_.end()) return false;
  if (at->second.id == id) {
    gone(name);
    return true;
  }
  at->second.id = id;
  at->second.since_ns = now_ns;
  at->second.not_before_ns = now_ns + std::min(rule_.quiet_ns, kOneSecondNs);
  place(name, at->second);
  return false;
}

int64_t Ripeness::next_ns() const { return order_.empty() ? kNever : order_.begin()->first; }

}  // namespace sluice::unattended
