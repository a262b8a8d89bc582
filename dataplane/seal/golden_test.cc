// The datagrams that docs/WIRE.md shows, byte for byte. tools/peer is held to the same ones.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "dataplane/core/status.h"
#include "dataplane/seal/seal.h"

namespace sluice::seal {
namespace {

using Bytes = std::vector<uint8_t>;
using wire::CrcKind;
using wire::Type;

// The block of hex digits behind <!-- golden: NAME -->.
Bytes documented(const std::string& name) {
  const std::ifstream file(SLUICE_SOURCE_DIR "/docs/WIRE.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const size_t mark = document.find("<!-- golden: " + name + " -->");
  EXPECT_NE(mark, std::string::npos) << name;
  const size_t begin = document.find("```\n", mark) + 4;
  std::istringstream digits(document.substr(begin, document.find("```", begin) - begin));
  Bytes bytes;
  for (uint32_t byte = 0; digits >> std::hex >> byte;) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

Bytes sealed(CrcKind kind, wire::Header header, const Bytes& payload) {
  header.length = static_cast<uint32_t>(payload.size());
  Bytes datagram(wire::kHeaderBytes + payload.size());
  FlowSeal(kind).seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(datagram.data(), wire::kHeaderBytes),
                      datagram.data() + wire::kHeaderBytes);
  return datagram;
}

wire::Header header_of(Type type, uint64_t tx_seq, uint64_t send_time_ns, uint32_t done_seen,
                       uint32_t statuses_heard) {
  return {.type = type,
          .flow_id = 0x8000112233440007,
          .tx_seq = tx_seq,
          .send_time_ns = send_time_ns,
          .done_seen = done_seen,
          .credit_wanted = type == Type::kStatus ? 0U : 36U,
          .statuses_heard = statuses_heard};
}

TEST(Golden, Data) {
  wire::Header header = header_of(Type::kData, 6, 0x0102030405060708, 3, 40);
  header.flags = wire::kFlagRetransmission;
  header.offset = 300 * 65536;
  header.object = 2;
  const Bytes payload = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  EXPECT_EQ(sealed(CrcKind::kCrc64Ecma, header, payload), documented("data"));
  EXPECT_EQ(sealed(CrcKind::kCrc32c, header, payload), documented("data, CRC-32C"));
}

wire::Status some_status() {
  wire::Status status{.echo_send_time_ns = 0x0102030405060708,
                      .echo_hold_ns = 1000,
                      .received_end = 7,
                      .datagrams_received = 4,
                      .no_room = 0,
                      .crc_errors = 1,
                      .credit_extents = 20,
                      .advice_bps = 1'000'000'000,
                      .bytes_received = 36009,
                      .delay_min_ns = -5,
                      .delay_max_ns = 300,
                      .done_end = 6,
                      .done_back = 3,
                      .run_count = 2,
                      .gap_count = 2};
  status.runs[0] = {.object = 2, .count = 2, .first = 300};
  status.runs[1] = {.object = 2, .count = 1, .first = 298};
  status.gaps[0] = {.first = 2, .count = 1};
  status.gaps[1] = {.first = 4, .count = 2};
  return status;
}

Bytes encoded(const wire::Status& status) {
  Bytes payload(wire::kStatusBytesMax);
  payload.resize(wire::encode_status(status, payload).bytes);
  return payload;
}

TEST(Golden, Status) {
  EXPECT_EQ(sealed(CrcKind::kCrc32c, header_of(Type::kStatus, 41, 0x1112131415161718, 0, 0),
                   encoded(some_status())),
            documented("status"));
}

TEST(Golden, StatusWithHoles) {
  wire::Status status = some_status();
  status.holes_count = 2;
  status.holes[0] = {.object = 2, .told = 64, .number = 302, .run_count = 3};
  status.holes[1] = {.object = 2, .told = 20, .number = 304, .run_count = 1};
  status.hole_runs[0] = {.first = 0, .count = 1};
  status.hole_runs[1] = {.first = 5, .count = 3};
  status.hole_runs[2] = {.first = 63, .count = 1};
  status.hole_runs[3] = {.first = 18, .count = 2};
  EXPECT_EQ(sealed(CrcKind::kCrc32c, header_of(Type::kStatus, 42, 0x1112131415161719, 0, 0), encoded(status)),
            documented("status, holes"));
}

TEST(Golden, Probe) {
  EXPECT_EQ(sealed(CrcKind::kCrc32c, header_of(Type::kProbe, 7, 0x0102030405060A0B, 4, 42), {}),
            documented("probe"));
}

}  // namespace
}  // namespace sluice::seal
