// One node in a fuzzer's hands: a real worker, files of known content, and the fuzzer as its control and
// wire.
//
// Whatever control and peer say, what leaves is well-formed and shows no memory but the file's, and when
// all flows are closed nothing of an object is in use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/mman.h>

#include <memory>
#include <vector>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/core/compressed.h"
#include "dataplane/crc/crc.h"
#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {

inline constexpr uint32_t kFileBytes = 6 * kExtentBytes;
inline constexpr uint32_t kFlowsUsed = 16;  // of the flow slots

// The eight bytes at a multiple of eight: another word at every place of every file. `generated` ones
// repeat with every extent.
inline uint64_t content(uint64_t offset, bool generated = false) {
  uint64_t x = (offset % kExtentBytes / 8 + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  return (x ^ (x >> 27)) + (generated ? 0 : offset / kExtentBytes * 0xD1342543DE82EF95);
}

inline bool is_content(uint64_t offset, std::span<const uint8_t> bytes, bool generated,
                       bool or_zero = false) {
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const size_t n = std::min<size_t>(8, bytes.size() - at);
    const uint64_t expected = content(offset + at, generated);
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, n);
    if (std::memcmp(&word, &expected, n) != 0 && (!or_zero || word != 0)) return false;
  }
  return true;
}

// A file of that content, for all sources; a new, empty one for each destination.
inline UniqueFd source_file() {
  static const UniqueFd file = [] {
    std::vector<uint64_t> words;
    for (uint64_t at = 0; at < kFileBytes; at += 8) words.push_back(content(at));
    UniqueFd fd(::memfd_create("source", MFD_CLOEXEC));
    fuzz::require(::write(fd.get(), words.data(), kFileBytes) == kFileBytes, "the source is there");
    return fd;
  }();
  return UniqueFd(::dup(file.get()));
}

class FuzzNode {
 public:
  // `protection`: of all its flows.
  explicit FuzzNode(uint8_t host, wire::Protection protection = wire::Protection::kCrc)
      : side_(std::make_unique<Side>(host)), tap_(protection) {
    const net::Buffer& pattern = *side_->port.pattern();
    for (uint32_t at = 0; at < pattern.bytes; at += 8) {
      const uint64_t word = content(at, true);
      std::memcpy(pattern.data + at, &word, 8);
    }
  }
  ~FuzzNode() {
    board::Board* const board = &side_->board();
    side_.reset();
    ::munmap(board, sizeof *board);  // the product keeps it for its life; a fuzzer makes thousands
  }
  FuzzNode(const FuzzNode&) = delete;
  FuzzNode& operator=(const FuzzNode&) = delete;

  Side& side() { return *side_; }
  board::Board& board() { return side_->board(); }
  auto& arrived() { return side_->port.frames().arrived; }
  auto& sent() { return side_->port.frames().sent; }

  // What AttachServer lets pass. False when the slot is taken.
  bool open_object(uint32_t session, uint32_t id, uint32_t flags, uint64_t size, UniqueFd fd) {
    auto object = std::make_unique<Object>();
    object->session = session;
    object->id = id;
    object->flags = flags;
    object->extent_bytes = kExtentBytes;
    object->size = size;
    object->fd = std::move(fd);
    if (flags & board::kObjectWrite) {
      object->written = std::make_unique<std::atomic<uint64_t>[]>(object->extent_count() / 64 + 1);
      object->sums = id % 2 != 0 ? sums::available() : 0;
    }
    return side_->objects.publish(std::move(object));
  }
  // As AttachServer does: not while something of it is in use.
  void close_object(uint32_t session, uint32_t id) {
    const Object* const object = side_->objects.at(session, id);
    if (object != nullptr && object->extents_in_use.load() == 0) side_->objects.retract(session, id);
  }

  // One step, and as many more as the disk needs, unless the worker waits for room for its events.
  void step(uint64_t now_ns) {
    side_->worker.step(now_ns);
    while (side_->worker.disk_operations() > 0 &&
           board().workers[0].events.room() >= WorkerResources::kEventReserve) {
      ::sched_yield();
      side_->worker.step(now_ns);
    }
    for (const Frame& frame : sent()) check(frame);
  }

  // What an honest control would do at the end; then nothing may be left of any flow.
  void close_all(uint64_t now_ns) {
    board::WorkerSlot& slot = board().workers[0];
    slot.commands.reset();
    slot.events.reset();
    for (uint32_t flow = 0; flow < kFlowsUsed; ++flow) {
      fuzz::require(slot.commands.push({.kind = board::CommandKind::kCloseFlow, .flow = flow}),
                    "takes commands");
    }
    step(now_ns += 1'000'000);
    sent().clear();
    for (int i = 0; i < 20; ++i) step(now_ns += 1'000'000);
    fuzz::require(side_->worker.disk_operations() == 0, "no disk operation is left");
    fuzz::require(sent().empty(), "a closed flow sends nothing");
    for (uint32_t session = 0; session < board::kSessionsMax; ++session) {
      for (uint32_t i = 0; i < board::kOpenObjectsMax; ++i) {
        const Object* const object = side_->objects.at(session, i);
        fuzz::require(object == nullptr || object->extents_in_use.load() == 0, "no extent is left in use");
      }
    }
  }

  void check_counters() {
    uint64_t sum = side_->counter(Counter::rx_control_frames) + side_->counter(Counter::rx_statuses) +
                   side_->counter(Counter::rx_probes) + side_->counter(Counter::rx_chunks) +
                   side_->counter(Counter::rx_parity) + side_->counter(Counter::rx_echoes);
    for (auto c = static_cast<uint32_t>(Counter::rx_drop_not_ours);
         c <= static_cast<uint32_t>(Counter::rx_drop_echo); ++c) {
      sum += side_->counter(static_cast<Counter>(c));
    }
    fuzz::require(sum == side_->counter(Counter::rx_frames), "every frame received is counted once");
  }

  // A frame that this node sent.
  void check(const Frame& frame) {
    fuzz::require(frame.size() <= 9014, "a frame fits the port");
    net::UdpFrame udp;
    const net::Parse parse = net::parse_udp(frame, &udp);
    fuzz::require(parse != net::Parse::kMalformed, "a frame sent is well-formed");
    if (parse != net::Parse::kUdp) return;
    wire::Header header;
    fuzz::require(wire::decode(udp.payload, &header) == wire::Reject::kNone, "a datagram sent decodes");
    std::span<const uint8_t> payload = udp.payload.subspan(wire::kHeaderBytes);
    std::optional<std::vector<uint8_t>> opened;
    if (tap_.seal().enciphers(header.type)) {
      opened = tap_.open(header, udp.payload);
      fuzz::require(opened.has_value(), "who has the keys can open it");
      payload = *opened;
    }
    if (header.type == wire::Type::kStatus) {
      wire::Status status;
      fuzz::require(wire::decode_status(payload, &status), "a status sent decodes");
    } else if (header.type == wire::Type::kData && (header.flags & wire::kFlagCompressed) != 0) {
      wire::CompressedHead head;
      fuzz::require(wire::take_head(payload, &head), "a chunk of a compressed extent has a head");
    } else if (header.type == wire::Type::kData) {
      fuzz::require(is_content(header.offset, payload, false) || is_content(header.offset, payload, true),
                    "data sent are the file's at that place");
    }
  }

 private:
  std::unique_ptr<Side> side_;
  Tap tap_;
};

}  // namespace sluice::lane::testing
