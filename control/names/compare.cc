// SPDX-License-Identifier: Apache-2.0
#include "control/names/compare.h"

#include <utility>

namespace sluice::names {
namespace {

// What a transfer carries of a mode. A directory that is sticky stays so.
constexpr uint32_t kModeCarried = 0777;
constexpr uint32_t kSticky = 01000;

bool is_beneath(std::string_view path, std::string_view directory) {
  return !directory.empty() && path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

bool is_sent(Type type) { return type == Type::kFile || type == Type::kDirectory || type == Type::kLink; }

// `one` is at the source.
bool is_same(const Entry& one, const Entry& other, bool by_digest) {
  if (one.type != other.type) return false;
  const bool is_file = one.type == Type::kFile;
  if (is_file && one.size_bytes != other.size_bytes) return false;
  if (is_file && by_digest) {
    if (!one.digest || one.digest != other.digest) return false;  // one that could not be read has none
  } else if (one.mtime_ns != other.mtime_ns) {
    return false;
  }
  if (one.type == Type::kLink) return one.target == other.target;  // its mode means nothing
  const bool becomes_sticky = one.type == Type::kDirectory && (one.mode & ~other.mode & kSticky) != 0;
  return ((one.mode ^ other.mode) & kModeCarried) == 0 && !becomes_sticky;
}

}  // namespace

std::optional<Comparison::Side> Comparison::wants() const {
  for (const Side side : {Side::kSource, Side::kDestination}) {
    if (list(side).names.empty() && !list(side).ended) return side;
  }
  return std::nullopt;
}

void Comparison::put(Side side, Page page) {
  List& to = list(side);
  uint64_t& count = side == Side::kSource ? totals_.source : totals_.destination;
  for (Entry& entry : page.entries) {
    bool left_out = is_beneath(entry.path, to.skipped);
    if (!left_out && !takes_(entry.path, entry.type == Type::kDirectory)) {
      left_out = true;
      to.skipped = entry.path;
    }
    count += left_out ? 0 : 1;
    // The directory around it must be known to hold it.
    if (left_out && side == Side::kSource) continue;
    to.names.push_back({.entry = std::move(entry), .left_out = left_out});
  }
  advance();
}

void Comparison::end(Side side) {
  list(side).ended = true;
  advance();
}

std::vector<Difference> Comparison::take() { return std::exchange(found_, {}); }

void Comparison::advance() {
  std::deque<Name>& source = list(Side::kSource).names;
  std::deque<Name>& destination = list(Side::kDestination).names;
  while (!wants()) {
    if (source.empty() && destination.empty()) return leave_extra_directories({});
    std::strong_ordering order = std::strong_ordering::equal;
    if (destination.empty()) {
      order = std::strong_ordering::less;
    } else if (source.empty()) {
      order = std::strong_ordering::greater;
    } else {
      order = compare_paths(source.front().entry.path, destination.front().entry.path);
    }
    if (order >= 0) leave_extra_directories(destination.front().entry.path);
    if (order < 0) only_source(source.front().entry);
    if (order > 0) only_destination(destination.front());
    if (order == 0) both(source.front().entry, destination.front());
    if (order <= 0) source.pop_front();
    if (order >= 0) destination.pop_front();
  }
}

// What of the extra directories does not hold the name that comes next is complete.
void Comparison::leave_extra_directories(std::string_view next) {
  while (!extra_directories_.empty() && !is_beneath(next, extra_directories_.back().path)) {
    ExtraDirectory left = std::move(extra_directories_.back());
    extra_directories_.pop_back();
    ++(left.stays ? totals_.kept : totals_.extra);
    if (left.stays && !extra_directories_.empty()) extra_directories_.back().stays = true;
    found_.push_back({.kind = left.stays ? Difference::Kind::kKept : Difference::Kind::kExtra,
                      .type = Type::kDirectory,
                      .path = std::move(left.path)});
  }
}

bool Comparison::problem(const Entry& entry, Difference::Kind kind) {
  if (entry.error_code == 0) return false;
  ++(kind == Difference::Kind::kSourceProblem ? totals_.source_problems : totals_.destination_problems);
  found_.push_back({.kind = kind,
                    .type = entry.type,
                    .path = entry.path,
                    .error_code = entry.error_code,
                    .error = entry.error});
  return true;
}

void Comparison::found(Difference::Kind kind, const Entry& entry, Type there) {
  const uint64_t bytes = entry.type == Type::kFile ? entry.size_bytes : 0;
  found_.push_back(
      {.kind = kind, .type = entry.type, .destination_type = there, .size_bytes = bytes, .path = entry.path});
}

void Comparison::only_source(const Entry& entry) {
  if (problem(entry, Difference::Kind::kSourceProblem)) return;
  if (!is_sent(entry.type)) {
    ++totals_.left_out;
    return;
  }
  ++totals_.missing;
  found(Difference::Kind::kMissing, entry);
}

void Comparison::only_destination(const Name& name) {
  const bool shielded = is_beneath(name.entry.path, shielded_);
  if (name.left_out || shielded || problem(name.entry, Difference::Kind::kDestinationProblem)) {
    if (!extra_directories_.empty()) extra_directories_.back().stays = true;
    return;
  }
  if (name.entry.type == Type::kDirectory) {
    extra_directories_.push_back({.path = name.entry.path});
    return;
  }
  ++totals_.extra;
  found(Difference::Kind::kExtra, name.entry);
}

void Comparison::both(const Entry& source, const Name& destination) {
  const Entry& there = destination.entry;
  const bool unknown = problem(source, Difference::Kind::kSourceProblem);
  if (!destination.left_out) (void)problem(there, Difference::Kind::kDestinationProblem);
  // What the source has not, or may have, is no reason to remove all that is in it.
  if (there.type == Type::kDirectory && (unknown || source.type != Type::kDirectory)) shielded_ = there.path;
  if (unknown) return;
  if (!is_sent(source.type)) {
    ++totals_.left_out;
  } else if (is_same(source, there, by_digest_)) {
    ++totals_.same;
  } else {
    ++totals_.different;
    found(Difference::Kind::kDifferent, source, there.type);
  }
}

}  // namespace sluice::names
