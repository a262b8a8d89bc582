// A hostile control: commands, flow configurations, gaps and raw words of any content in the boards of two
// nodes, whose workers go on between them. They survive; what they send and write is only ever the file's.
// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "dataplane/lane/node_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::lane::testing;

constexpr uint32_t kObjects = 6;
constexpr uint32_t kOperationsMax = 200;

struct World {
  std::array<FuzzNode, 2> nodes{FuzzNode(1), FuzzNode(2)};
  std::vector<UniqueFd> destinations;
  uint64_t now_ns = 1'000'000'000;
  bool poked = false;
};

board::FlowConfig config_for(World& world, uint32_t node, uint32_t slot, board::Direction direction) {
  board::FlowConfig c;
  c.flow_id = 0xABCDEF0000000000ULL | (direction == board::Direction::kRx ? slot : slot ^ 1U);
  c.rate_bps = 20'000'000'000;
  c.partition_bytes = 4 * kExtentBytes;
  c.chunk_bytes = 8192;
  c.extent_bytes = kExtentBytes;
  c.credit_extents = 4;
  c.status_interval_ns = 1'000'000;
  c.crc_kind = static_cast<uint8_t>(wire::CrcKind::kCrc64Ecma);
  c.local_port = c.peer_port = static_cast<uint16_t>(47000 + slot / 2);
  std::memcpy(c.local_ip, world.nodes[node].side().port.info().ip4, 16);
  std::memcpy(c.peer_ip, world.nodes[1 - node].side().port.info().ip4, 16);
  c.direction = direction;
  return c;
}

void open_flow(World& world, uint32_t node, uint32_t slot, const board::FlowConfig& config) {
  board::FlowSlot& flow = world.nodes[node].board().flows[slot];
  flow.config = config;
  flow.control.rate_bps = config.rate_bps;
  world.nodes[node].side().keys.put(slot, {config.tag, {}, kFlowSecret});
  world.nodes[node].board().workers[0].commands.push({.kind = board::CommandKind::kOpenFlow, .flow = slot});
}

void open_object(World& world, uint32_t node, uint32_t session, uint32_t id, uint32_t flags, uint64_t size) {
  UniqueFd fd;
  if ((flags & board::kObjectWrite) != 0 && (flags & board::kObjectDiscard) == 0) {
    fd = UniqueFd(::memfd_create("destination", MFD_CLOEXEC));
    world.destinations.emplace_back(::dup(fd.get()));
  } else if ((flags & (board::kObjectGenerate | board::kObjectDiscard)) == 0) {
    fd = source_file();
  }
  world.nodes[node].open_object(session, id, flags, size, std::move(fd));
}

// A transfer from node 0 to node 1 as it should be, to begin with.
void begin(World& world) {
  for (uint32_t node = 0; node < 2; ++node) {
    const auto direction = node == 0 ? board::Direction::kTx : board::Direction::kRx;
    open_flow(world, node, 7 - (1 - node), config_for(world, node, 7 - (1 - node), direction));
    for (uint32_t id = 0; id < 4; ++id) {
      const uint32_t memory = node == 0 ? board::kObjectGenerate : board::kObjectDiscard;
      open_object(world, node, 0, id,
                  (node == 1 ? uint32_t{board::kObjectWrite} : 0) | (id == 3 ? memory : 0),
                  kFileBytes - 1000 * id);
    }
  }
  world.nodes[0].board().workers[0].commands.push(
      {.kind = board::CommandKind::kPartition, .flow = 6, .length = 2 * kExtentBytes});
}

void run(World& world, uint64_t step_ns, bool lost) {
  world.now_ns += step_ns;
  for (uint32_t node = 0; node < 2; ++node) {
    FuzzNode& from = world.nodes[node];
    from.step(world.now_ns);
    auto& to = world.nodes[1 - node].arrived();
    if (!lost) to.insert(to.end(), from.sent().begin(), from.sent().end());
    from.sent().clear();
  }
}

board::Command any_command(fuzz::Input& input) {
  board::Command c{.kind = static_cast<board::CommandKind>(1 + input.below(8))};
  const uint32_t odd = input.take<uint8_t>();
  c.flow = odd & 1 ? static_cast<uint32_t>(input.edge()) : 4 + input.below(4);
  c.object = odd & 2 ? static_cast<uint32_t>(input.edge()) : input.below(kObjects);
  c.offset = odd & 4 ? input.edge() : uint64_t{input.below(8)} * kExtentBytes;
  c.length = odd & 8 ? input.edge() : uint64_t{input.below(8)} * kExtentBytes + (odd >> 5);
  return c;
}

board::FlowConfig any_config(World& world, uint32_t node, uint32_t slot, fuzz::Input& input) {
  board::FlowConfig c =
      config_for(world, node, slot, input.flag() ? board::Direction::kTx : board::Direction::kRx);
  switch (input.below(16)) {
    case 0:
      c.flow_id = input.edge();
      break;
    case 1:
      c.rate_bps = input.edge();
      break;
    case 2:
      c.session = static_cast<uint32_t>(input.edge());
      break;
    case 3:
      c.chunk_bytes = static_cast<uint32_t>(input.edge());
      break;
    case 4:
      c.chunk_bytes = 512 + 8 * input.take<uint8_t>();
      break;
    case 5:
      c.extent_bytes = static_cast<uint32_t>(input.edge());
      break;
    case 6:
      c.credit_extents = static_cast<uint32_t>(input.edge());
      break;
    case 7:
      c.status_interval_ns = static_cast<uint32_t>(input.edge());
      break;
    case 8:
      c.local_port = input.take<uint16_t>();
      break;
    case 9:
      c.peer_port = input.take<uint16_t>();
      break;
    case 10:
      c.crc_kind = input.take<uint8_t>() % 5;
      break;
    case 11:
      c.udp_checksum = 1;
      c.echoes = static_cast<uint32_t>(input.edge());
      c.echo_bytes = static_cast<uint16_t>(input.edge());
      break;
    case 12:
      c.local_ip[input.below(16)] = input.take<uint8_t>();
      break;
    case 13:
      c.peer_ip[input.below(16)] = input.take<uint8_t>();
      break;
    case 14:
      c.direction = static_cast<board::Direction>(input.take<uint8_t>());
      break;
    case 15:
      c.reach = static_cast<board::Reach>(input.take<uint8_t>() % 4);
      break;
    default:
      break;
  }
  return c;
}

void any_object(World& world, uint32_t node, fuzz::Input& input) {
  const uint32_t session = input.below(2);
  const uint32_t id = input.below(kObjects);
  if (input.flag()) return world.nodes[node].close_object(session, id);
  static constexpr uint32_t kKinds[] = {0,
                                        board::kObjectDirect,
                                        board::kObjectGenerate,
                                        board::kObjectWrite,
                                        board::kObjectWrite | board::kObjectDirect,
                                        board::kObjectWrite | board::kObjectDiscard};
  const uint32_t flags = kKinds[input.below(6)];
  const uint64_t size =
      (flags & board::kObjectWrite) != 0 ? input.take<uint32_t>() % (2 * kFileBytes) : input.edge();
  open_object(world, node, session, id, flags, std::min(size, uint64_t{1} << 60));
}

void poke(World& world, uint32_t node, fuzz::Input& input) {
  auto* const words = reinterpret_cast<std::atomic<uint64_t>*>(&world.nodes[node].board());
  const uint64_t value = input.edge();
  uint64_t at = input.take<uint32_t>();
  if (input.flag()) {  // where much is decided
    auto& board = world.nodes[node].board();
    void* const places[] = {&board,
                            &board.workers[0].commands,
                            &board.workers[0].events,
                            &board.flows[7].gaps,
                            &board.flows[6].config,
                            &board.flows[7].state,
                            &board.flows[7].window};
    at = static_cast<uint64_t>(static_cast<char*>(places[at % 7]) - reinterpret_cast<char*>(&board)) / 8 +
         (at >> 8) % 64;
  }
  words[at % (sizeof(board::Board) / 8)] = value;
  world.poked = true;
}

void operate(World& world, fuzz::Input& input) {
  const uint32_t operation = input.take<uint8_t>();
  const uint32_t node = operation & 1;
  board::Board& board = world.nodes[node].board();
  const uint32_t slot = 4 + (operation >> 6);
  switch ((operation >> 1) % 16) {
    case 0:
    case 1:
    case 2:
      for (uint32_t i = 1 + input.below(16); i > 0; --i) run(world, kStepNs, false);
      break;
    case 3:
      run(world, uint64_t{1} << input.below(36), false);
      break;
    case 4:
      run(world, kStepNs, true);
      break;
    case 5:
    case 6:
    case 7:
      board.workers[0].commands.push(any_command(input));
      break;
    case 8:
    case 9:
      open_flow(world, node, slot, any_config(world, node, slot, input));
      break;
    case 10:
      board.flows[slot].gaps.push({input.edge(), input.flag() ? 1 + input.below(40) : input.edge()});
      break;
    case 11:
      board.flows[slot].control.rate_bps = input.edge();
      board.flows[slot].control.rate_ramps = input.flag() ? 1 : 0;
      break;
    case 12:
      board.control_alive_ns = input.flag() ? world.now_ns : input.edge();
      break;
    case 13:
      any_object(world, node, input);
      break;
    case 14:
      poke(world, node, input);
      break;
    default:
      board::Event event;
      for (uint32_t n = 0; n < board::kEventSlots && board.workers[0].events.pop(&event); ++n) {
        fuzz::require(world.poked || event.flow < board::kFlowsMax, "an event names a flow");
      }
  }
}

void check_destination(int fd) {
  static std::vector<uint8_t> bytes(4 * kFileBytes);
  const ssize_t n = ::pread(fd, bytes.data(), bytes.size(), 0);
  fuzz::require(n >= 0 && static_cast<size_t>(n) < bytes.size(), "a destination keeps its size");
  for (size_t at = 0; at < static_cast<size_t>(n); at += 512) {
    const auto block = std::span(bytes).subspan(at, std::min<size_t>(512, static_cast<size_t>(n) - at));
    fuzz::require(is_content(at, block, false, true) || is_content(at, block, true, true),
                  "data written are the file's at that place");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  World world;
  if (!input.flag()) begin(world);
  for (uint32_t i = 0; i < kOperationsMax && !input.empty(); ++i) operate(world, input);
  for (FuzzNode& node : world.nodes) {
    if (!world.poked) node.check_counters();
    node.close_all(world.now_ns);
  }
  for (const UniqueFd& fd : world.destinations) check_destination(fd.get());
  return 0;
}
