// A hostile dataplane's board, as control reads it: port data of any content are refused, or everything that
// is shared out by them stays within them; figures of any content are summed and judged, notes of any content
// taken.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <set>

#include "control/attach/map.h"
#include "control/board/figures.h"
#include "control/board/flow_table.h"
#include "control/board/session_log.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::attach;

board::PortInfo any_port(fuzz::Input& input) {
  board::PortInfo port{};
  port.device[0] = 'd';
  port.chunk_bytes_max_ip4 = 8904;
  port.chunk_bytes_max_ip6 = 8880;
  port.workers = 1 + input.below(board::kWorkersMax);
  port.extent_bytes_max = 1U << 20;
  port.rx_extents = port.tx_extents = input.below(64);
  port.udp_port_base = input.flag() ? 47000 : input.take<uint16_t>();
  auto* const bytes = reinterpret_cast<uint8_t*>(&port);
  for (uint32_t n = input.below(8); n > 0; --n)
    bytes[input.take<uint16_t>() % sizeof port] = input.take<uint8_t>();
  return port;
}

// Several sessions take and give back: no slot, port or extent is given twice.
void share_out(const board::PortInfo& port, fuzz::Input& input) {
  auto table = std::make_unique<board::FlowTable>();
  table->reset(port);
  std::vector<std::vector<board::FlowGrant>> sessions;
  std::set<FlowSlotId> slots;
  std::set<uint16_t> ports;
  fuzz::require(table->lanes_max(board::Direction::kRx) <= board::kLanesMax, "lanes in bounds");
  for (uint32_t n = 0; n < 40 && !input.empty(); ++n) {
    if (input.flag() && !sessions.empty()) {
      for (const board::FlowGrant& grant : sessions.back()) {
        table->release_flow(grant.slot);
        slots.erase(grant.slot);
        ports.erase(grant.local_port);
      }
      sessions.pop_back();
      continue;
    }
    const auto flows = table->take_flows(1 + input.below(board::kLanesMax));
    if (!flows) continue;
    for (const board::FlowGrant& grant : *flows) {
      fuzz::require(grant.slot.value() < board::kFlowsMax && slots.insert(grant.slot).second, "a slot once");
      fuzz::require(ports.insert(grant.local_port).second && grant.worker < port.workers &&
                        (grant.local_port - port.udp_port_base) % port.workers == grant.worker,
                    "a port once, of its worker");
    }
    sessions.push_back(*flows);
    if (input.flag()) {
      (void)table->take_buffers(*flows);
    } else if (const auto credit = table->take_credit(*flows); credit) {
      for (const uint32_t extents : *credit)
        fuzz::require(extents >= board::kCreditMin && extents <= board::kCreditStart, "credit in bounds");
    }
    for (uint32_t worker = 0; worker < port.workers; ++worker) {
      fuzz::require(table->free_credit(worker) <= port.rx_extents, "no more credit than there is");
    }
  }
}

// A ring of notes of any content, and any head and tail.
void read_log(fuzz::Input& input) {
  static const auto flow = std::make_unique<board::FlowSlot>();
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(&flow->log);
  constexpr size_t kIndices = 128 / 8;  // head and tail
  for (uint32_t n = input.below(16); n > 0; --n) {
    const size_t at = input.flag() ? input.below(kIndices) : input.take<uint16_t>() % (sizeof flow->log / 8);
    words[at] = input.edge();
  }
  flow->state.log_dropped = input.edge();
  board::SessionLog log(board::LogLevel::kPackets);
  const board::LogTime now{.monotonic_ns = input.edge(), .unix_ns = input.take<int64_t>() / 2};
  log.look({{3, flow.get()}}, now);
  fuzz::require(log.end() - log.begin() <= board::kLogSlots + 1, "no more than the ring holds");
  for (uint64_t number = log.begin(); number < log.end(); ++number) {
    const board::LogRecord& record = log.at(number);
    fuzz::require(record.unix_ns <= now.unix_ns, "nothing was noted after now");
    fuzz::require(record.dropped != 0 || board::log_kind_name(record.event.kind) != "unknown",
                  "a kind that is known");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const board::PortInfo port = any_port(input);
  if (const Status status = check_port(port)) {
    share_out(port, input);
  } else {
    fuzz::require(status.error().message.find('\n') == std::string::npos, "one line says why");
  }
  char text[sizeof board::Board::crc_variant];
  for (char& c : text) c = input.take<char>();
  if (const Result<std::string> name = read_crc_variant(text)) {
    fuzz::require(name->size() < sizeof text && name->find_first_of("\n\x1b\xff") == std::string::npos,
                  "a name that can be printed");
  }
  board::FlowState state{};
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(&state);
  for (size_t i = 0; i < sizeof state / 8; ++i) words[i] = input.edge();
  board::FlowFigures before;
  board::FlowFigures now;
  before.add(state);
  for (size_t i = 0; i < sizeof state / 8; ++i) words[i] = input.edge();
  now.add(state);
  (void)board::sender_wait(before, now, input.edge(), input.edge());
  read_log(input);
  board::RateMeter meter;
  while (!input.empty()) {
    meter.sample(input.edge(), input.edge());
    fuzz::require(meter.rate_bps().value_or(0) >= 0, "a rate is never below zero");
  }
  return 0;
}
