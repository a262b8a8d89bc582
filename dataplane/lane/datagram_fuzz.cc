// A hostile peer, who has the keys, or a stranger, who has none: datagrams of any content, into a worker that
// receives and sends, while its control is honest. What is announced as written has the digest it was
// announced with; credit and the numbers on the board only grow; no frame is lost from the count.
// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "dataplane/coding/block_digest.h"
#include "dataplane/coding/block_for_test.h"
#include "dataplane/coding/block_layout.h"
#include "dataplane/lane/compressed_for_fuzz.h"
#include "dataplane/lane/node_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::lane::testing;
using board::CommandKind;
using wire::CrcKind;

constexpr uint32_t kOperationsMax = 300;
constexpr uint64_t kRxFlow = 0xABCDEF0000000000ULL | kRxSlot;
constexpr uint64_t kTxFlow = 0x1234560000000000ULL | 9;

struct Written {
  uint64_t length = 0;
  uint64_t digest = 0;
};

struct World {
  explicit World(wire::Protection a_protection) : protection(a_protection) {}

  const wire::Protection protection;
  FuzzNode node{1, protection};
  Tap peer{protection};
  uint64_t probe_seq = 0;
  UniqueFd destination{::memfd_create("destination", MFD_CLOEXEC)};
  uint64_t size = 0;
  uint32_t chunk_bytes = 0;
  CrcKind crc_kind = CrcKind::kCrc64Ecma;
  board::Reach reach = board::Reach::kAgreed;
  uint8_t codes = 0;
  bool echoes = false;
  board::Compress compress = board::Compress::kOff;
  uint64_t now_ns = 1'000'000'000;
  uint64_t next_seq = 0;
  uint64_t status_seq = 0;
  uint64_t highest_data_end = 0;
  uint64_t credit[2] = {};
  std::map<uint64_t, Written> written;
};

void command(World& world, const board::Command& c) { world.node.board().workers[0].commands.push(c); }

void open_flow(World& world, uint32_t slot, uint64_t flow_id, board::Direction direction) {
  board::FlowConfig c;
  c.flow_id = flow_id;
  c.rate_bps = 20'000'000'000;
  c.partition_bytes = 4 * kExtentBytes;
  c.chunk_bytes = world.chunk_bytes;
  c.extent_bytes = kExtentBytes;
  c.credit_extents = direction == board::Direction::kRx ? 4 : 2;
  c.status_interval_ns = 1'000'000;
  c.crc_kind = static_cast<uint8_t>(world.crc_kind);
  c.local_port = c.peer_port = 47000;
  std::memcpy(c.local_ip, world.node.side().port.info().ip4, 16);
  std::memcpy(c.peer_ip, c.local_ip, 16);
  c.peer_ip[15] = 2;
  c.direction = direction;
  c.reach = world.reach;
  c.codes = world.codes;
  c.choice.parity = board::Parity::kWhereLost;
  c.choice.compress = world.compress;
  if (world.echoes) {
    c.echoes = direction == board::Direction::kRx ? wire::kEchoesMax : 8;
    c.echo_bytes = 100;
  }
  board::FlowSlot& flow = world.node.board().flows[slot];
  flow.config = c;
  flow.control.rate_bps = c.rate_bps;
  world.node.side().give_keys(slot, c.tag, world.protection);
  command(world, {.kind = CommandKind::kOpenFlow, .flow = slot});
}

void begin(World& world, fuzz::Input& input) {
  static constexpr uint32_t kChunkBytes[] = {8192, 512, 8896, 1384};
  const uint32_t form = input.take<uint8_t>();
  world.chunk_bytes = kChunkBytes[form % 4];
  world.crc_kind = (form & 4) != 0 ? CrcKind::kCrc32c : CrcKind::kCrc64Ecma;
  world.reach = static_cast<board::Reach>((form >> 6) % 3);
  world.echoes = (form & 32) != 0;
  world.codes = (form & 16) != 0 ? board::kCodeReedSolomon : 0;
  const uint32_t direct = (form & 8) != 0 ? uint32_t{board::kObjectDirect} : 0;
  const auto size = input.take<uint32_t>();
  world.size = 1 + size % kFileBytes;
  world.compress = (size & 1U << 31) != 0 ? board::Compress::kAlways : board::Compress::kOff;
  FuzzNode& node = world.node;
  node.open_object(0, 0, board::kObjectWrite | direct, world.size, UniqueFd(::dup(world.destination.get())));
  node.open_object(0, 1, direct, kFileBytes - 100, source_file());
  node.open_object(0, 2, board::kObjectWrite | board::kObjectDiscard, world.size, UniqueFd());
  node.open_object(0, 3, board::kObjectGenerate, kFileBytes, UniqueFd());
  open_flow(world, kRxSlot, kRxFlow, board::Direction::kRx);
  open_flow(world, kTxSlot, kTxFlow, board::Direction::kTx);
  const uint8_t mac[6] = {2, 0, 0, 0, 0, 2};
  // The next hop, as it asks for us.
  Frame arp(60);
  const uint8_t front[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1};
  std::memcpy(arp.data(), front, sizeof front);
  std::memcpy(&arp[22], mac, 6);
  const uint8_t ips[] = {10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1};
  std::memcpy(&arp[28], ips, sizeof ips);
  node.arrived().push_back(arp);
  command(world, {.kind = CommandKind::kPartition, .flow = kTxSlot, .object = 1, .length = 4 * kExtentBytes});
}

wire::Status any_status(fuzz::Input& input) {
  wire::Status s;
  s.echo_send_time_ns = input.edge();
  s.echo_hold_ns = input.edge();
  s.received_end = input.edge();
  s.credit_extents = input.flag() ? input.edge() : input.below(32);
  s.datagrams_received = input.edge();
  s.crc_errors = input.edge();
  s.done_end = input.flag() ? static_cast<uint32_t>(input.edge()) : input.below(16);
  s.done_back = input.flag() ? static_cast<uint32_t>(input.edge()) : input.below(16);
  s.run_count = input.below(8);
  for (uint32_t i = 0; i < s.run_count; ++i) {
    s.runs[i] = {.object = input.below(5), .count = 1 + input.below(4), .first = input.below(8)};
  }
  s.gap_count = input.below(8);
  uint64_t end = 0;
  for (uint32_t i = 0; i < s.gap_count; ++i) {
    s.gaps[i] = {end + (input.flag() ? input.edge() : input.below(32)), 1 + input.below(64)};
    end = s.gaps[i].first + s.gaps[i].count;
  }
  return s;
}

// A chunk of a compressed extent of the file, the same for each extent of its length; with a head that says
// something else, if that is wanted.
void fill_compressed(World& world, fuzz::Input& input, uint32_t odd, wire::Header* h,
                     std::vector<uint8_t>* payload) {
  const uint64_t extent = input.below(4);
  if (extent * kExtentBytes >= world.size) return;
  const auto length =
      static_cast<uint32_t>(std::min<uint64_t>(kExtentBytes, world.size - extent * kExtentBytes));
  const Chunks& chunks = compressed_chunks(length, world.chunk_bytes, world.crc_kind);
  if (chunks.empty()) return;
  const uint32_t index = input.take<uint8_t>() % chunks.size();
  *payload = chunks[index];
  h->offset = extent * kExtentBytes + uint64_t{index} * world.chunk_bytes;
  h->object = 0;
  h->flags = static_cast<uint8_t>(h->flags | wire::kFlagCompressed);
  if (odd & 4) (*payload)[input.take<uint8_t>() % wire::kCompressedHeadBytes] ^= input.take<uint8_t>();
}

void fill_data(World& world, fuzz::Input& input, uint32_t odd, wire::Header* h,
               std::vector<uint8_t>* payload) {
  h->object = odd & 1 ? static_cast<uint32_t>(input.edge()) : input.below(16) == 0 ? 2 : 0;
  const uint64_t chunk = input.take<uint8_t>();
  const uint64_t chunks = (kExtentBytes + world.chunk_bytes - 1) / world.chunk_bytes;
  h->offset = odd & 2 ? input.edge() : chunk / chunks * kExtentBytes + chunk % chunks * world.chunk_bytes;
  uint64_t length = 0;
  if (h->offset < world.size) {
    length = std::min<uint64_t>(
        {world.chunk_bytes, kExtentBytes - h->offset % kExtentBytes, world.size - h->offset});
  }
  if (odd & 4) length = input.take<uint16_t>() % 9000;
  payload->resize(length);
  for (size_t at = 0; at + 8 <= length; at += 8) {
    const uint64_t word = content(h->offset + at);
    std::memcpy(payload->data() + at, &word, 8);
  }
  if (odd & 8) h->flags = input.take<uint8_t>() % 4;
  if (world.compress != board::Compress::kOff && input.flag()) fill_compressed(world, input, odd, h, payload);
}

// A repair symbol of what the file should hold, or rubbish that says to be one.
void fill_parity(World& world, fuzz::Input& input, uint32_t odd, wire::Header* h,
                 std::vector<uint8_t>* payload) {
  h->offset = odd & 2 ? input.edge() : input.below(4) * uint64_t{kExtentBytes};
  h->object = odd & 1 ? static_cast<uint32_t>(input.edge()) : 0;
  h->block = static_cast<uint8_t>(odd & 4 ? input.take<uint8_t>() : input.below(3));
  h->repair_id = odd & 8 ? input.take<uint16_t>() : static_cast<uint16_t>(input.below(8));
  h->block_digest = input.edge();
  h->done_seen = h->credit_wanted = h->statuses_heard = 0;
  const uint64_t begin = h->offset % kExtentBytes == 0 ? h->offset : world.size;
  if (begin >= world.size || (odd & 4) != 0) {
    payload->resize(input.take<uint16_t>() % 9000);
    return;
  }
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(kExtentBytes, world.size - begin));
  const uint32_t k = coding::source_symbols(coding::Scheme::kReedSolomon,
                                            {.extent_bytes = kExtentBytes, .chunk_bytes = world.chunk_bytes});
  const coding::BlockLayout layout((length + world.chunk_bytes - 1) / world.chunk_bytes, k);
  h->block = static_cast<uint8_t>(h->block % layout.blocks());
  const uint32_t symbol_bytes = coding::symbol_bytes(length, world.chunk_bytes);
  coding::SymbolsForTest source(layout.chunks_of(h->block), symbol_bytes);
  uint32_t last_bytes = 0;
  for (uint32_t i = 0; i < source.places.size(); ++i) {
    const uint64_t at = uint64_t{layout.chunk_at(h->block, i)} * world.chunk_bytes;
    last_bytes = static_cast<uint32_t>(std::min<uint64_t>(world.chunk_bytes, length - at));
    for (uint32_t byte = 0; byte + 8 <= last_bytes; byte += 8) {
      const uint64_t word = content(begin + at + byte);
      std::memcpy(source.places[i] + byte, &word, 8);
    }
  }
  const auto code = coding::make_code(coding::Scheme::kReedSolomon, k);
  const coding::SymbolsForTest repair = coding::repair_of(*code, source, h->repair_id, 1);
  if (repair.bytes.empty()) return payload->resize(symbol_bytes);
  *payload = repair.bytes[0];
  if ((odd & 16) == 0)
    h->block_digest = coding::block_digest(source.sources(), world.chunk_bytes, last_bytes);
}

Frame datagram(World& world, fuzz::Input& input) {
  const uint32_t odd = input.take<uint8_t>();
  const uint32_t which = input.below(8);
  wire::Header h{.type = which < 4   ? wire::Type::kData
                         : which < 5 ? wire::Type::kParity
                         : which < 7 ? wire::Type::kStatus
                                     : wire::Type::kProbe};
  h.send_time_ns = odd & 16 ? input.edge() : world.now_ns - 1000;
  h.done_seen = odd & 16 ? static_cast<uint32_t>(input.edge()) : static_cast<uint32_t>(world.written.size());
  h.credit_wanted = odd & 16 ? static_cast<uint32_t>(input.edge()) : 8;
  h.statuses_heard = odd & 16 ? static_cast<uint32_t>(input.edge()) : 0;
  if (h.type == wire::Type::kStatus && (odd & 2) == 0) h.done_seen = h.statuses_heard = h.credit_wanted = 0;
  h.flow_id = h.type == wire::Type::kStatus ? kTxFlow : kRxFlow;
  h.tx_seq = odd & 32 ? input.edge() : world.next_seq++ + (input.below(16) == 0 ? input.below(200) : 0);
  std::vector<uint8_t> payload;
  if (h.type == wire::Type::kProbe && (odd & 8) != 0) {
    h.type = wire::Type::kEcho;
    h.credit_wanted = 0;
    if ((odd & 32) == 0) h.tx_seq = input.below(16);
    if ((odd & 4) != 0) {
      h.flags = wire::kFlagReflected;
      h.flow_id = kTxFlow;
      h.done_seen = h.statuses_heard = 0;
    }
    payload.resize(input.flag() ? 100 : input.take<uint16_t>() % 9000);
  } else if (h.type == wire::Type::kData) {
    fill_data(world, input, odd, &h, &payload);
  } else if (h.type == wire::Type::kParity) {
    fill_parity(world, input, odd, &h, &payload);
  } else if (h.type == wire::Type::kStatus) {
    payload.resize(wire::kStatusBytesMax);
    payload.resize(wire::encode_status(any_status(input), payload).bytes);
  } else {
    h.offset = odd & 2 ? input.edge() : world.probe_seq++;
    if (odd & 1) payload.resize(input.take<uint8_t>());
  }
  if ((odd & 64) != 0 && !payload.empty())
    payload[input.take<uint16_t>() % payload.size()] ^= input.take<uint8_t>();
  h.length = static_cast<uint32_t>(payload.size());

  net::Address local;
  std::memcpy(local.bytes, world.node.side().port.info().ip4, 16);
  net::Address peer = local;
  peer.bytes[15] = 2;
  // A peer that is learnt comes from elsewhere now and then, or a stranger does.
  if (world.reach == board::Reach::kPeerOpens) peer.bytes[15] = static_cast<uint8_t>(2 + input.below(3));
  const net::FrameTemplate front(peer, 47000, local, 47000);
  Frame frame(front.bytes() + wire::kHeaderBytes);
  front.write(frame.data(), wire::kHeaderBytes + h.length);
  uint8_t* const sluice = frame.data() + front.bytes();
  std::vector<uint8_t> sealed(payload.size());
  seal::FlowSeal seal = world.peer.seal(world.crc_kind);
  if (seal.enciphers(h.type) &&
      seal::number_of(h) >> seal::KeyChain::kEpochBits > 1) {  // of which even the peer has no key
    sealed = payload;
    h.key_epoch = input.take<uint8_t>();
    wire::encode(h, std::span<uint8_t, wire::kHeaderBytes>(sluice, wire::kHeaderBytes));
  } else {
    seal.seal(h, payload, std::span<uint8_t, wire::kHeaderBytes>(sluice, wire::kHeaderBytes), sealed.data());
  }
  if ((odd & 128) != 0) {  // damage, under a right seal or not
    const uint32_t at = input.take<uint8_t>();
    frame[at % frame.size()] ^= input.take<uint8_t>();
    if (!seal.enciphers(h.type)) {
      const uint64_t crc = crc::compute(world.crc_kind, 0, payload.data(), payload.size());
      wire::store_be64(sluice + wire::kHeaderCoveredBytes,
                       crc::compute(world.crc_kind, crc, sluice, wire::kHeaderCoveredBytes));
    }
  }
  frame.insert(frame.end(), sealed.begin(), sealed.end());
  if (odd == 255) frame.resize(input.take<uint16_t>() % (frame.size() + 20));
  return frame;
}

void honest_control(World& world, fuzz::Input& input) {
  const uint64_t offset = uint64_t{input.below(8)} * kExtentBytes;
  const uint32_t kind = input.below(6);
  const uint32_t object = input.flag() ? 1 : 3;
  if (kind == 0) command(world, {.kind = CommandKind::kQueryMissing, .flow = kRxSlot, .length = world.size});
  if (kind == 1 && offset < world.size)
    command(world, {.kind = CommandKind::kForgetExtents, .flow = kRxSlot, .offset = offset, .length = 1});
  if (kind == 2 && offset < kFileBytes - kExtentBytes)
    command(world, {.kind = CommandKind::kPartition,
                    .flow = kTxSlot,
                    .object = object,
                    .offset = offset,
                    .length = kExtentBytes});
  if (kind == 3)
    command(world, {.kind = CommandKind::kRepair,
                    .flow = kTxSlot,
                    .object = object,
                    .offset = offset + 77,
                    .length = 20'000});
  if (kind == 4) command(world, {.kind = CommandKind::kQueryWork, .flow = kTxSlot});
  if (kind == 5) world.node.board().flows[kRxSlot].control.settled_below = world.highest_data_end;
}

void events(World& world) {
  board::Event e;
  while (world.node.board().workers[0].events.pop(&e)) {
    fuzz::require(e.kind != board::EventKind::kExtentFailed, "no disk operation fails");
    if (e.kind != board::EventKind::kExtentWritten || e.object != 0) continue;
    fuzz::require(e.offset % kExtentBytes == 0 && e.offset < world.size && e.length <= kExtentBytes &&
                      e.length <= world.size - e.offset,
                  "an extent of the object was written");
    world.written[e.offset] = {e.length, e.digest};
  }
  const board::FlowState& rx = world.node.board().flows[kRxSlot].state;
  const board::FlowState& tx = world.node.board().flows[kTxSlot].state;
  const bool restarted = world.node.side().counter(board::Counter::rx_window_restarts) > 0;
  fuzz::require(restarted || rx.highest_data_end >= world.highest_data_end,
                "the highest tx_seq never goes back");
  fuzz::require(rx.credit_extents >= world.credit[0], "nor does credit that was granted");
  // What the peer lists and we never sent counts as opened, too: a repair opened it, or the peer lies and has
  // less.
  world.credit[1] = std::max<uint64_t>(world.credit[1], tx.credit_extents);
  const uint64_t opened = tx.opened_extents;  // less what the peer has listed: credit may be any number
  fuzz::require(
      opened - std::min<uint64_t>(opened, tx.extents_done) <= std::max<uint64_t>(world.credit[1], 2),
      "none is opened without credit");
  world.highest_data_end = rx.highest_data_end;
  world.credit[0] = rx.credit_extents;
}

void step(World& world, uint64_t step_ns) {
  world.now_ns += step_ns;
  world.node.board().control_alive_ns = world.now_ns;
  world.node.step(world.now_ns);
  world.node.sent().clear();
  events(world);
}

void check_file(const World& world) {
  std::vector<uint8_t> bytes(kExtentBytes);
  for (const auto& [offset, extent] : world.written) {
    const ssize_t n =
        ::pread(world.destination.get(), bytes.data(), extent.length, static_cast<off_t>(offset));
    fuzz::require(n == static_cast<ssize_t>(extent.length), "what was written can be read");
    fuzz::require(crc::compute(world.crc_kind, 0, bytes.data(), extent.length) == extent.digest,
                  "and has the digest that was announced");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  World world(static_cast<wire::Protection>(input.below(3)));
  begin(world, input);
  step(world, kStepNs);
  for (uint32_t i = 0; i < kOperationsMax && !input.empty(); ++i) {
    const uint32_t operation = input.take<uint8_t>();
    if (operation < 200) {
      world.node.arrived().push_back(datagram(world, input));
    } else if (operation < 215) {
      honest_control(world, input);
    } else if (operation < 220) {
      const auto frame = input.bytes(input.take<uint8_t>());
      world.node.arrived().emplace_back(frame.begin(), frame.end());
    } else {
      step(world, operation < 250 ? kStepNs : uint64_t{1} << input.below(36));
    }
  }
  while (!world.node.arrived().empty()) step(world, kStepNs);
  world.node.check_counters();
  world.node.close_all(world.now_ns);
  check_file(world);
  return 0;
}
