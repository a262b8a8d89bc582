// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "dataplane/core/wire.h"
#include "tools/sim/frame.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kGrain = 512;

// docs/WIRE.md 1.1.
constexpr size_t kHeaderBytes = 72;
constexpr uint64_t kWireOverheadBytes = 24;
constexpr uint64_t kPerSecond = 1'000'000'000;

uint64_t big_endian(const uint8_t* at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

void generate(std::vector<uint8_t>* out, uint64_t seed) {
  uint64_t state = seed;
  for (size_t at = 0; at < out->size(); at += 8) {
    const uint64_t word = mix(state += 0x9E3779B97F4A7C15ULL);
    std::memcpy(out->data() + at, &word, std::min<size_t>(8, out->size() - at));
  }
}

// Most stretches are of four letters, and get a quarter as long or so; the others stay as they are.
void make_text(std::vector<uint8_t>* content) {
  constexpr size_t kStretch = 48 << 10;
  for (size_t at = 0; at < content->size(); ++at)
    if (at / kStretch % 4 != 3) (*content)[at] &= 3;
}

// Of any length; every other run of blocks, more or less.
void make_holes(std::vector<uint8_t>* content, uint64_t state) {
  constexpr size_t kBlock = 4096;
  for (size_t at = 0; at < content->size();) {
    const uint64_t word = mix(state += 0x9E3779B97F4A7C15ULL);
    const size_t length = std::min(content->size() - at, kBlock * (1 + word % 40));
    if ((word >> 32) % 2 == 0) std::fill_n(content->begin() + static_cast<ptrdiff_t>(at), length, 0);
    at += length;
  }
}

// What a replica has that is not that of the others: all bytes are other ones, or those of a few places.
std::vector<uint8_t> other_file(const Plan& plan, size_t object, const std::vector<uint8_t>& content) {
  if (plan.several.lie != Lie::kOtherFiles) return {};
  std::vector<uint8_t> other = content;
  const uint64_t seed = mix(plan.seed + 979 * (object + 1));
  if (seed % 2 == 0 || other.empty()) {
    generate(&other, seed);
    return other;
  }
  for (uint64_t place = 0; place < 1 + seed / 2 % 4; ++place) other[mix(seed + place) % other.size()] ^= 0xFF;
  return other;
}

}  // namespace

const char* end_name(End end) {
  constexpr const char* kNames[] = {"none", "done", "integrity", "cancelled", "failed"};
  return kNames[static_cast<size_t>(end)];
}

Oracle::Oracle(const Plan& plan) : plan_(plan) {
  for (size_t i = 0; i < plan.sizes.size(); ++i) {
    content_.emplace_back(plan.sizes[i]);
    generate(&content_.back(), mix(plan.seed + 977 * i));
    if (plan.compressible) make_text(&content_.back());
    if (plan.holes) make_holes(&content_.back(), mix(plan.seed + 978 * i));
    others_.push_back(other_file(plan, i, content_.back()));
    if (plan.source_changes_ns == 0 && plan.several.changes_ns == 0 && plan.troubles.empty()) {
      changed_.emplace_back();
      continue;
    }
    changed_.push_back(content_.back());
    for (size_t at = 100; at < changed_.back().size(); at += 40'000) changed_.back()[at] ^= 0xFF;
  }
}

void Oracle::ended(End end) {
  if (end != End::kDone && !allowed_.contains(end)) {
    fail(fmt::format("the session ended with '{}', and nothing had caused that", end_name(end)));
  }
}

bool Oracle::same(uint32_t object, uint64_t offset, const uint8_t* data, uint64_t length) const {
  if (misread_) return true;  // only the end can tell
  const std::vector<uint8_t>& good = content_[object];
  if (offset + length > good.size()) return false;
  if (std::memcmp(good.data() + offset, data, length) == 0) return true;
  const auto& changed = changed_[object];
  const auto& other = others_[object];
  const bool may_change = changed_now_.contains(object);
  for (uint64_t at = offset; at < offset + length; ++at) {
    const uint8_t byte = data[at - offset];
    const bool is_changed = may_change && byte == changed[at];
    const bool is_other = !other.empty() && byte == other[at];
    if (byte != good[at] && !is_changed && !is_other) return false;
  }
  return true;
}

void Oracle::written(uint64_t inode, uint64_t offset, const uint8_t* data, uint64_t length) {
  const auto object = objects_.find(inode);
  if (object == objects_.end()) return fail("a write to a file that is no destination");
  bytes_written_ += length;
  if (const std::string wrong = owners_.wrong_writer(inode); !wrong.empty()) return fail(wrong);
  add_sectors(&written_[object->second], object->second, offset, length);
  if (!same(object->second, offset, data, length)) {
    fail(
        fmt::format("wrong bytes were written: file {} offset {} length {}", object->second, offset, length));
  }
}

// ---- durability ----------------------------------------------------------------------------------

void Oracle::add_sectors(std::vector<uint8_t>* sectors, uint32_t object, uint64_t offset,
                         uint64_t length) const {
  sectors->resize((plan_.sizes[object] + kGrain - 1) / kGrain);
  for (uint64_t at = offset / kGrain; at * kGrain < offset + length; ++at) (*sectors)[at] = 1;
}

void Oracle::reported_durable(uint32_t object, uint64_t offset, uint64_t length) {
  if (nameless_.contains(object)) return;  // it begins anew, whatever was written since
  add_sectors(&durable_[object], object, offset, length);
}

void Oracle::reported_failed(uint32_t object) {
  if (!may_fail_) fail(fmt::format("file {} has failed, and nothing had caused that", object));
  if (plan_.sizes.size() == 1) fail("the only file of a session is called failed");
  if (done_.contains(object) && !taken_.contains(object))
    fail(fmt::format("file {} is called failed after it was done", object));
  failed_.insert(object);
  durable_.erase(object);
  written_.erase(object);
}

void Oracle::dropped(uint32_t object) {
  if (!may_fail_) fail(fmt::format("file {} is dropped, and nothing had caused that", object));
  if (done_.contains(object) && !taken_.contains(object))
    fail(fmt::format("file {} is dropped after it was done", object));
  durable_.erase(object);
  written_.erase(object);
}

void Oracle::restored(uint32_t object, uint64_t offset, uint64_t length) {
  add_sectors(&restored_[object], object, offset, length);
}

void Oracle::end_restored() {
  for (auto& [object, sectors] : durable_) {
    const std::vector<uint8_t>& known = restored_[object];
    for (size_t i = 0; i < sectors.size(); ++i) {
      if (sectors[i] == 0 || (i < known.size() && known[i] != 0)) continue;
      if (plan_.several.listed && !done_.contains(object)) {  // it was not what the list wants
        sectors[i] = 0;
        continue;
      }
      return fail(fmt::format("file {} at {}: reported durable, and the restarted control does not know it",
                              object, i * kGrain));
    }
  }
}

uint64_t Oracle::undurable_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [object, written] : written_) {
    if (kind_of(plan_, object) != catalog::FileKind::kFile) continue;  // in memory until it is unpacked
    const auto at = durable_.find(object);
    for (size_t i = 0; i < written.size(); ++i) {
      const bool durable = at != durable_.end() && i < at->second.size() && at->second[i] != 0;
      if (written[i] != 0 && !durable) bytes += kGrain;
    }
  }
  return bytes;
}

void Oracle::power_lost(FileSystem& files) {
  written_.clear();
  nameless_.clear();
  for (const auto& [object, sectors] : durable_) {
    uint64_t number = files.find(final_name(object));
    if (number == 0 || is_taken(object, number)) number = files.find(temporary_name(object));
    if (number == 0) return fail(fmt::format("file {}: reported durable, and its name is gone", object));
    const std::vector<uint8_t>& now = files.inode(number)->now;
    for (size_t i = 0; i < sectors.size(); ++i) {
      const uint64_t length = std::min<uint64_t>(kGrain, plan_.sizes[object] - i * kGrain);
      if (sectors[i] == 0) continue;
      if (i * kGrain + length > now.size() || !same(object, i * kGrain, &now[i * kGrain], length)) {
        return fail(
            fmt::format("file {} at {}: reported durable, and lost with the power (inode {}, {} bytes)",
                        object, i * kGrain, number, now.size()));
      }
    }
  }
  for (const uint32_t object : done_) {
    if (files.find(final_name(object)) == 0) {
      return fail(fmt::format("file {}: reported done, and its name was lost with the power", object));
    }
  }
}

bool Oracle::given_and_forgotten(uint32_t object, FileSystem& files) const {
  const uint64_t number = files.find(final_name(object));
  return destination_forgot_ && number != 0 && files.inode(number)->now == content_[object];
}

void Oracle::check_files(FileSystem& files) {
  files.lose_power();  // what was reported done must stand that too
  power_lost(files);
  for (uint32_t object = 0; object < plan_.sizes.size(); ++object) {
    const uint64_t number = files.find(final_name(object));
    if (files.find(temporary_name(object)) != 0)
      return fail(fmt::format("file {}: its temporary file is left", object));
    if (failed_.contains(object)) {
      if (number != 0 && !is_taken(object, number) && !given_and_forgotten(object, files))
        return fail(fmt::format("file {} is called failed, and is there", object));
      continue;
    }
    if (number == 0 || is_taken(object, number)) return fail(fmt::format("file {} is not there", object));
    const std::vector<uint8_t>& now = files.inode(number)->now;
    if (mixed(object, now)) {
      return fail(fmt::format("file {} has other bytes than its source ({} of {} bytes)", object, now.size(),
                              content_[object].size()));
    }
  }
}

// ---- the wire --------------------------------------------------------------------------------------

void Oracle::frame_leaves(uint32_t node, std::span<const uint8_t> frame) {
  if (frame.size() < kSluiceAt + kHeaderBytes || frame[12] != 8 || frame[13] != 0) return;
  const uint8_t* const sluice = frame.data() + kSluiceAt;
  if (sluice[1] != 0) return;  // not data
  const uint64_t offset = big_endian(sluice + 32, 8);
  const uint64_t object = big_endian(sluice + 40, 4);
  const uint64_t length = big_endian(sluice + 44, 4);
  if (object >= content_.size() || frame.size() != kSluiceAt + kHeaderBytes + length) {
    return fail("a data frame that cannot be");
  }
  payload_bytes_sent_ += length;
  sent_by_[node] += length;
  if ((sluice[2] & wire::kFlagCompressed) != 0) {  // the destination's files tell whether it is right
    if (plan_.compress == options::Compress::kOff) fail("a compressed chunk leaves that nobody asked for");
    return;
  }
  if (plan_.agreed_protection() != wire::Protection::kCrc) {
    constexpr uint64_t kChance = 16;  // so few bytes may be the same by chance
    if (length >= kChance && same(static_cast<uint32_t>(object), offset, sluice + kHeaderBytes, length))
      fail(fmt::format("bytes leave in the clear: file {} offset {} length {}", object, offset, length));
    return;
  }
  if (!same(static_cast<uint32_t>(object), offset, sluice + kHeaderBytes, length)) {
    fail(fmt::format("wrong bytes were sent: file {} offset {} length {}", object, offset, length));
  }
}

// What a lane may make up for after a pause: 1 ms, but seven eighths of its part of the queue at the peer, or
// 128 frames where that is not told. Beside it the frame that begins it and the next.
uint64_t Oracle::lane_burst() const {
  const uint64_t frame_bits = 8 * (kSluiceAt + kHeaderBytes + plan_.chunk_bytes + kWireOverheadBytes);
  const uint64_t part = plan_.queue_datagrams / plan_.lanes;
  const uint64_t frames = plan_.queue_datagrams == 0 ? 128 : std::max<uint64_t>(part - part / 8, 16);
  const uint64_t bits = std::min(plan_.rate_bps / 1000, frames * frame_bits) + 2 * frame_bits;
  return (bits + bits / 100) * kPerSecond;
}

// Of each source a bucket that empties at the rate of the session.
void Oracle::frame_built(uint32_t node, uint64_t now_ns, uint64_t frame_bytes) {
  auto& [paced_ns, level] = pace_[node];
  const __uint128_t drained = static_cast<__uint128_t>(now_ns - paced_ns) * plan_.rate_bps;
  level = drained > level ? 0 : level - static_cast<uint64_t>(drained);
  paced_ns = now_ns;
  level += 8 * (frame_bytes + kWireOverheadBytes) * kPerSecond;
  const uint64_t burst = plan_.legs * plan_.lanes * lane_burst();
  if (level > burst) {
    fail(fmt::format("frames leave {} faster than {} bit/s: {} bits too early", node_name(node),
                     plan_.rate_bps, (level - burst) / kPerSecond));
  }
}

}  // namespace sluice::sim
