// The board: the shared memory between sluice-dataplane and sluice-control.
//
// The dataplane creates it (a sealed memfd, never EAL memory) and hands it to control over its
// unix socket (attach.h). It is a wire format: versioned, fixed size, no pointers, checked by the
// reader. Every field has one writer, named by its section; a reader copies a value once and then
// checks it, since the other side may be faulty. Fields that change while read are atomics, written
// with release and read with acquire. Both daemons run on one host: host byte order.
//
// Control decides, the dataplane obeys: a command with an index out of range is counted and ignored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dataplane/board/spsc_ring.h"
#include "dataplane/board/sums.h"

namespace sluice::board {

inline constexpr uint64_t kMagic = 0x534c554943453031;  // "SLUICE01"
inline constexpr uint32_t kVersion = 28;
inline constexpr uint32_t kWorkersMax = 16;
inline constexpr uint32_t kFlowsMax = 128;         // slots, both directions together
inline constexpr uint32_t kSessionsMax = 64;       // session slots
inline constexpr uint32_t kOpenObjectsMax = 256;   // per session; object ids are taken modulo this
inline constexpr uint32_t kWindowBits = 1U << 20;  // received tx_seq remembered per flow
inline constexpr uint32_t kCommandSlots = 1024;
inline constexpr uint32_t kEventSlots = 16384;
inline constexpr uint32_t kGapSlots = 4096;
inline constexpr uint32_t kLogSlots = 2048;  // of one flow
// Of one answer to kQueryMissing or kQueryUnwritten; whoever wants more asks again. So few that the answers
// to all commands of one look leave room for the events of a disk.
inline constexpr uint32_t kMissingRunsMax = 256;
inline constexpr uint32_t kPaddedSizesMax = 16;  // sizes of padded probes at a time, as in a status

enum class Direction : uint8_t { kTx = 1, kRx = 2 };
// Whether datagrams come from the addresses that were agreed upon, both ways; or one end is behind a NAT or a
// firewall, sends first, keeps the way open, and the other end learns its address from what comes.
enum class Reach : uint8_t { kAgreed = 0, kPeerOpens = 1, kWeOpen = 2 };
// When a sender makes repair symbols before it is asked for any: where that saves time
// (dataplane/coding/parity_choice.h), or wherever anything is lost.
enum class Parity : uint8_t { kWhereItPays = 0, kWhereLost = 1 };
// Which extents a sender compresses: none; those for which that saves time
// (dataplane/coding/compress_choice.h); or all that get shorter.
enum class Compress : uint8_t { kOff = 0, kWhereItPays = 1, kAlways = 2 };
// What a worker notes of a flow, each level what those before it do.
enum class LogLevel : uint8_t { kOff = 0, kEvents = 1, kPackets = 2 };

// ---- flow slots ------------------------------------------------------------------------------

// What a sender makes of extents. A receiver takes compressed ones unless `compress` is kOff.
struct SenderChoice {
  Parity parity = Parity::kWhereItPays;
  Compress compress = Compress::kOff;
};

// Written by control before Command kOpenFlow, constant until the worker's kFlowClosed.
struct FlowConfig {
  uint64_t flow_id = 0;       // rx: low 16 bits are this slot's index (the receiver names flows)
  uint64_t rate_bps = 0;      // tx: first value of FlowControl.rate_bps
  uint64_t rate_bps_max = 0;  // tx: it never gets higher; 0: not known
  uint64_t partition_bytes = 0;
  uint32_t session = 0;         // session slot, < kSessionsMax
  uint32_t chunk_bytes = 0;     // multiple of kChunkBytesStep, kChunkBytesMin..Max
  uint32_t extent_bytes = 0;    // power of two, >= 64 KiB, <= wire::kExtentBytesMax
  uint32_t credit_extents = 0;  // rx: the least window that FlowControl grants; tx: what it may open at first
  uint32_t status_interval_ns = 0;  // rx: while data arrives
  uint16_t local_port = 0;          // UDP; worker = (local_port - udp_port_base) % workers
  uint16_t peer_port = 0;
  uint8_t local_ip[16] = {};  // IPv4 as ::ffff:a.b.c.d
  uint8_t peer_ip[16] = {};   // kPeerOpens: what the peer takes for its own; only the family counts
  Direction direction = Direction::kTx;
  uint8_t crc_kind = 0;               // wire::CrcKind
  uint8_t udp_checksum = 0;           // 1: compute (offloaded where the device can), 0: send zero
  uint8_t expected_loss_percent = 0;  // tx: what the path loses whatever is sent, as declared; 0 to 95
  Reach reach = Reach::kAgreed;
  LogLevel log_level = LogLevel::kOff;  // first value of FlowControl.log_level
  uint16_t peer_queue_datagrams =
      0;  // tx: so many of this flow may wait where the peer receives; 0: not known
  // One more than that of the flow that had the slot before. A control that died may have left commands and
  // answers of flows that are gone.
  uint32_t tag = 0;
  uint8_t codes =
      0;  // erasure codes, as bits (dataplane/board/codes.h); tx: that may be used, rx: that are taken
  SenderChoice choice;
  // Datagrams that the peer reflects (docs/WIRE.md 1.13). tx: so many are sent before any data, with so many
  // bytes of payload; rx: so many are reflected at most. 0: the flow has none.
  uint16_t echo_bytes = 0;
  uint32_t echoes = 0;
};

// Written by control while the flow lives.
struct FlowControl {
  std::atomic<uint64_t> rate_bps;       // tx: paced rate of this lane, wire bytes included
  std::atomic<uint64_t> settled_below;  // rx: tx_seq below this were received or reported lost
  // rx: window granted beyond the completed extents; never less than FlowConfig.credit_extents.
  std::atomic<uint64_t> credit_extents;
  std::atomic<uint64_t> log_level;  // LogLevel; anything above the highest is that
  // tx: not 0 while rate_bps is still being found, so that it does not tell what the path carries.
  std::atomic<uint64_t> rate_ramps;
};

// Written by the worker that owns the flow; read by control and tools. Monotonic unless said.
struct FlowState {
  std::atomic<uint64_t> chunks;                // tx: sent first time; rx: accepted
  std::atomic<uint64_t> bytes;                 // payload bytes of `chunks`
  std::atomic<uint64_t> retransmitted_chunks;  // tx: sent again after a gap report
  std::atomic<uint64_t> repaired_chunks;       // tx: sent again after a NEED
  std::atomic<uint64_t> duplicate_chunks;      // rx: already had those bytes, or that tx_seq
  std::atomic<uint64_t> late_chunks;           // rx: tx_seq arrived after it was reported lost
  std::atomic<uint64_t> crc_errors;            // rx
  std::atomic<uint64_t> no_buffer_drops;       // rx: no extent buffer free; counted as disk loss
  std::atomic<uint64_t> bytes_done;            // tx: in extents the peer completed; rx: in extents written
  std::atomic<uint64_t> extents_done;          // as bytes_done, extents; tx: less what a false status listed
  std::atomic<uint64_t> credit_extents;        // absolute number; tx: as the newest status says; rx: granted
  std::atomic<uint64_t> opened_extents;        // tx: extents opened so far, less those given up; a level
  std::atomic<uint64_t> gaps_reported;         // rx: tx_seq reported lost; tx: tx_seq learned as lost
  std::atomic<uint64_t> probes;                // tx sent, rx received
  std::atomic<uint64_t> statuses;              // rx sent, tx received
  std::atomic<uint64_t> highest_data_end;      // rx: 1 + highest tx_seq of data; not a count
  std::atomic<uint64_t> probe_end;             // rx: 1 + highest tx_seq the sender says it has sent
  std::atomic<uint64_t> datagrams;             // rx: data of a new tx_seq that came, whatever became of it
  std::atomic<uint64_t> network_lost;          // tx, rx: datagrams that left and never came
  std::atomic<uint64_t> wanted_extents;        // tx, rx: window that the sender could use; a level
  std::atomic<uint64_t> lateness_ns;   // rx: the most that a datagram came late which was overtaken; a level
  std::atomic<uint64_t> rtt_ns;        // tx: smoothed; a level
  std::atomic<uint64_t> rtt_min_ns;    // tx: a level
  std::atomic<uint64_t> last_peer_ns;  // monotonic time of the last valid datagram; a level
  std::atomic<uint64_t> blocked_credit_ns;  // tx: time spent with data ready and no credit
  std::atomic<uint64_t> blocked_source_ns;  // tx: time spent waiting for reads
  std::atomic<uint64_t> blocked_memory_ns;  // tx: time spent with all buffers held by what is on its way
  std::atomic<uint64_t> blocked_pacing_ns;  // tx: time spent with data ready, held by the pacer
  // tx, what the newest status said (docs/WIRE.md 1.6); levels
  std::atomic<uint64_t> peer_received_end;    // 1 + highest tx_seq that the peer has received
  std::atomic<uint64_t> peer_bytes_received;  // payload that it has accepted
  std::atomic<int64_t> delay_min_ns;          // one-way, its clock minus ours, of the data since the status
  std::atomic<int64_t> delay_max_ns;          // before; 0 and 0: there was none
  std::atomic<uint64_t> peer_datagrams;       // data that came, whatever became of it
  std::atomic<uint64_t> peer_no_room;         // of them dropped for want of a buffer
  std::atomic<uint64_t> peer_crc_errors;      // dropped because they were damaged
  std::atomic<uint64_t> peer_advice_bps;      // what its disk keeps up with; 0: no advice
  // The next hop on the way to the peer, while it does not answer ARP or neighbour solicitations; levels
  std::atomic<uint64_t> unreachable_since_ns;  // monotonic time; 0: it answers, or nobody asked
  std::atomic<uint64_t> next_hop[2];           // its address, 16 bytes as they stand; all zero: no route
  std::atomic<uint64_t> padded_probes;         // tx sent, rx received
  // tx: of padded probes, what the newest status that tells of them says; levels. Bytes of padding << 32, how
  // many of that size came; 0: no more sizes.
  std::atomic<uint64_t> padded_came[kPaddedSizesMax];
  std::atomic<uint64_t> log_dropped;     // tx, rx: what was to be noted and found the ring of notes full
  std::atomic<uint64_t> parity;          // tx: repair symbols sent; rx: that came
  std::atomic<uint64_t> decoded_chunks;  // rx: of `chunks`, those that repair symbols replaced
  // Echoes, each counted once by its number.
  std::atomic<uint64_t> echoes;            // tx: sent; rx: reflected
  std::atomic<uint64_t> echoes_came;       // tx: came back
  std::atomic<uint64_t> echoes_wrong;      // tx: of them with another payload than was sent
  std::atomic<uint64_t> echo_bytes_wrong;  // tx: in these
  std::atomic<uint64_t> echo_copies;       // tx: came back once more
  std::atomic<uint64_t> echoes_over;       // tx: 1: none is sent or awaited any more; a level
  // Extents that travel compressed: tx: whose first pass has left; rx: that were restored and are right.
  std::atomic<uint64_t> compressed_bytes;       // as they lie in their files
  std::atomic<uint64_t> compressed_wire_bytes;  // as they travel
};

// A run of lost tx_seq, composed by control's loss detector, carried by the worker in statuses.
struct Gap {
  uint64_t first = 0;
  uint64_t count = 0;
};

// The network log (MCDTP, section 4.2.1): what happened to a flow, as its worker saw it.
enum class LogKind : uint32_t {
  kOpened = 1,          // value: tx the rate, rx the credit
  kClosed = 2,          // the flow ends; what is on its way to or from the disk may still come
  kGap = 3,             // tx_seq, value: so many numbers from there on were lost
  kReport = 4,          // a status; tx_seq: received_end, value: credit, length: how many gaps it names
  kRetransmission = 5,  // tx, because of a gap: tx_seq, object, offset, length
  kRepair = 6,          // tx, because of a NEED: the same
  kNeed = 7,            // object, offset, length; tx: the peer asks for them, rx: they were found missing
  kRate = 8,            // tx; value: bit/s from now on, where that is 1/64 more or less than before
  kCompletion = 9,      // object, offset, length of an extent; tx: the peer has it, rx: it is written
  kFailure = 10,        // the same, value: errno; tx: not read, rx: not written
  kSent = 11,           // kPackets, tx: first transmission: tx_seq, object, offset, length
  kReceived = 12,       // kPackets, rx: accepted: the same
};
inline constexpr LogKind kLogKindLast = LogKind::kReceived;

struct LogEvent {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC, of the worker's turn
  uint64_t tx_seq = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t value = 0;
  uint32_t object = 0;
  LogKind kind{};
};

struct alignas(64) FlowSlot {
  FlowConfig config;                          // control
  alignas(64) FlowControl control;            // control
  alignas(64) FlowState state;                // worker
  alignas(64) SpscRing<Gap, kGapSlots> gaps;  // control -> worker (rx flows)
  // rx: bit tx_seq % kWindowBits is set when that tx_seq was received; words ahead of the
  // highest are cleared by the worker as it advances. Valid for the last kWindowBits/2 numbers.
  alignas(64) std::atomic<uint64_t> window[kWindowBits / 64];  // worker
  // Full, it keeps what is in it: what is new is counted in log_dropped.
  alignas(64) SpscRing<LogEvent, kLogSlots> log;  // worker -> control
};

// ---- commands and events ---------------------------------------------------------------------

enum class CommandKind : uint32_t {
  kOpenFlow = 1,        // flow; tag: that of its config
  kCloseFlow = 2,       // flow and its tag; answered by kFlowClosed once no I/O or buffer of it is left
  kPartition = 3,       // tx flow: send [offset, offset+length) of object; offset is extent-aligned
  kRepair = 4,          // tx flow: send these bytes again (NEED); any offset and length
  kQueryMissing = 5,    // rx flow: which bytes of [offset, offset+length) of object are missing?
  kForgetExtents = 6,   // rx flow: extents in the range are missing again (failed sync)
  kQueryWork = 7,       // tx flow: what was given to it and is not complete at the peer?
  kQueryUnwritten = 8,  // as kQueryMissing, of bytes that are not on disk: also those of a write under way
  kPeerHas = 9,  // tx flow: the peer has these bytes, whoever sent them: hold none of their extents any more
  // tx flow: send `tag` probes with `length` bytes of padding; offset: of which round, whose first drops what
  // is left of another one
  kSendPadded = 10,
  kGiveUp = 11,  // rx flow: no part of object is held or wanted any more; answered by kGivenUp
};

struct Command {
  CommandKind kind{};
  uint32_t flow = 0;  // flow slot
  uint32_t object = 0;
  uint32_t tag = 0;  // echoed in events that answer
  uint64_t offset = 0;
  uint64_t length = 0;
};

enum class EventKind : uint32_t {
  kFlowOpened = 1,     // value: 0, or errno-like reason (EINVAL, ENOBUFS); tag: as in the command
  kFlowClosed = 2,     // tag: of the flow
  kExtentSent = 3,     // tx: first pass of an extent left; digest = CRC of its bytes
  kPartitionSent = 4,  // tx: first pass of a partition left
  // rx: extent written (not yet synced); digest = CRC of its bytes; tag: which of `sums` it has, as bits
  kExtentWritten = 5,
  kExtentFailed = 6,  // tx: read failed, rx: write failed; value = errno
  kMissing = 7,       // rx: answer to kQueryMissing: these bytes are missing
  kMissingEnd = 8,    // rx: end of that answer; length = bytes missing in all
  kQueued = 9,        // tx: answer to kQueryWork: the rest of a partition whose first pass has not ended
  kHeld = 10,         // tx: answer to kQueryWork: sent, not yet complete at the peer
  kWorkEnd = 11,      // tx: end of that answer
  kGivenUp = 12,  // rx: answer to kGiveUp; length: bytes of it that the flow has given to the disk and are
                  // not written yet
  // tx: eight bytes of an echo that came back otherwise than they left. object: the echo; offset: of the
  // first byte in its payload; length: how many of the eight are payload; digest: as they left, value: as
  // they came, both as the bytes stand
  kEchoFault = 13,
};

struct Event {
  EventKind kind{};
  uint32_t flow = 0;
  uint32_t object = 0;
  uint32_t tag = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t digest = 0;
  uint64_t value = 0;
  ExtentSums sums = {};
};

// ---- counters --------------------------------------------------------------------------------

enum class Counter : uint32_t {
#define SLUICE_COUNTER(name, unit, help) name,
#include "dataplane/board/counters.def"
#undef SLUICE_COUNTER
  kCount
};
struct CounterInfo {
  const char* name;
  const char* unit;
  const char* help;
};
// One entry per Counter, in order.
const CounterInfo* counter_table();
inline constexpr uint32_t kCounters = static_cast<uint32_t>(Counter::kCount);

struct alignas(64) WorkerSlot {
  std::atomic<uint64_t> counters[kCounters];              // worker
  alignas(64) SpscRing<Command, kCommandSlots> commands;  // control -> worker
  alignas(64) SpscRing<Event, kEventSlots> events;        // worker -> control
};

// ---- the whole -------------------------------------------------------------------------------

// What the data port offers; written once by the dataplane before anybody attaches.
struct PortInfo {
  char device[64];               // "udp", or the ethdev's name, e.g. "net_memif0"
  uint8_t ip4[16];               // as ::ffff:a.b.c.d, all zero when there is none
  uint8_t ip6[16];               // all zero when there is none
  uint32_t frame_bytes_max;      // largest Ethernet frame without FCS that it sends and receives
  uint32_t chunk_bytes_max_ip4;  // largest chunk in such a frame
  uint32_t chunk_bytes_max_ip6;
  uint32_t workers;
  uint32_t extent_bytes_max;  // size of one extent buffer
  uint32_t rx_extents;        // per worker, the sum of credit that control may grant on it
  uint32_t tx_extents;        // per worker
  uint16_t udp_port_base;
  uint8_t udp_checksum_offload;  // 1: the device computes and checks it
  uint8_t hugepages;             // 0: running with --no-huge
  uint64_t rate_bps_max;         // configured limit of the port
  uint32_t queue_datagrams;      // per worker, that may wait to be received; 0: not known
  uint32_t codes;                // erasure codes that it has, as bits (dataplane/board/codes.h)
  char abilities[192];  // of a card, as text: its driver, what it does, what is done for it; or empty
  // While sockets serve instead of the device that node.toml names; else both are empty.
  char fallback_for[64];      // that device, e.g. "0000:01:00.0"
  char fallback_reason[128];  // why, as text for people
  uint64_t fallback_unix_ns;  // since when; 0: not
  uint32_t falls;             // from the device to sockets, since the daemon started
  uint32_t sums;              // of extents that it has, as bits (dataplane/board/sums.h)
};

enum class Link : uint32_t { kUnknown = 0, kUp = 1, kDown = 2 };

struct alignas(64) Board {
  uint64_t magic;
  uint32_t version;
  uint32_t board_bytes;
  uint64_t generation;  // random, another at every start of the dataplane
  PortInfo port;
  char crc_variant[16];  // by what the dataplane sums (crc::variant()), as text
  alignas(64) std::atomic<uint64_t> dataplane_alive_ns;  // CLOCK_MONOTONIC, dataplane
  std::atomic<uint64_t> sandbox;        // what the dataplane has given up: sandbox::State::bits(), dataplane
  std::atomic<uint64_t> refused_calls;  // system calls that its sandbox did not allow, dataplane
  std::atomic<uint32_t> link;           // Link of the port as it was within the last second, dataplane
  alignas(64) std::atomic<uint64_t> control_alive_ns;  // CLOCK_MONOTONIC, control
  alignas(64) WorkerSlot workers[kWorkersMax];
  FlowSlot flows[kFlowsMax];
};

}  // namespace sluice::board
