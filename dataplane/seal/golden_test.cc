// The datagrams that docs/WIRE.md shows, byte for byte. tools/peer is held to the same ones.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "dataplane/base/documented_for_test.h"
#include "dataplane/core/compressed.h"
#include "dataplane/core/status.h"
#include "dataplane/seal/engine_for_test.h"
#include "dataplane/seal/seal.h"

namespace sluice::seal {
namespace {

using Bytes = std::vector<uint8_t>;
using wire::CrcKind;
using wire::Protection;
using wire::Type;

Bytes documented(const std::string& name) {
  const std::string bytes = base::documented_bytes(name);
  return {bytes.begin(), bytes.end()};
}

Secret documented_secret() {
  Secret secret;
  for (size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<uint8_t>(i);
  return secret;
}

// Sealed by each engine, and opened again: what is documented must come of all.
class Golden : public EveryEngine {
 protected:
  Bytes sealed(Protection protection, CrcKind kind, wire::Header header, const Bytes& payload) {
    header.length = static_cast<uint32_t>(payload.size());
    Bytes datagram(wire::kHeaderBytes + payload.size());
    FlowKeys keys(protection, documented_secret(), KeyChain::kEpochBits, GetParam(), true);
    FlowSeal seal(kind, protection, keys, *scratch_);
    seal.seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(datagram.data(), wire::kHeaderBytes),
              datagram.data() + wire::kHeaderBytes);
    FlowKeys peers_keys(protection, documented_secret(), KeyChain::kEpochBits, GetParam(), true);
    wire::Header read;
    EXPECT_EQ(wire::decode(datagram, &read), wire::Reject::kNone);
    Bytes opened(payload.size());
    const Opened found =
        FlowSeal(kind, protection, peers_keys, *scratch_).open(read, datagram, opened.data());
    EXPECT_TRUE(found.good());
    if (found.good() && !found.placed()) found.place(opened.data());
    FlowSeal::publish();
    EXPECT_EQ(opened, payload);
    return datagram;
  }

  std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>();
};
INSTANTIATE_TEST_SUITE_P(Engines, Golden, testing::ValuesIn(kGcmEngines), engine_test_name);

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

TEST_P(Golden, Data) {
  wire::Header header = header_of(Type::kData, 6, 0x0102030405060708, 3, 40);
  header.flags = wire::kFlagRetransmission;
  header.offset = 300 * 65536;
  header.object = 2;
  const Bytes payload = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  constexpr auto kCrc64 = CrcKind::kCrc64Ecma;
  EXPECT_EQ(sealed(Protection::kCrc, kCrc64, header, payload), documented("data"));
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc32c, header, payload), documented("data, CRC-32C"));
  EXPECT_EQ(sealed(Protection::kAes128Gcm, kCrc64, header, payload), documented("data, aes-128-gcm"));
  EXPECT_EQ(sealed(Protection::kAes256Gcm, kCrc64, header, payload), documented("data, aes-256-gcm"));
  header.tx_seq = 8'388'614;
  EXPECT_EQ(sealed(Protection::kAes128Gcm, kCrc64, header, payload), documented("data, next epoch"));
}

TEST_P(Golden, Compressed) {
  wire::Header header = header_of(Type::kData, 8, 0x0102030405060708, 3, 40);
  header.flags = wire::kFlagCompressed;
  header.offset = 301 * 65536;
  header.object = 2;
  const Bytes payload = documented("compressed, payload");
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc64Ecma, header, payload), documented("compressed"));
  EXPECT_EQ(sealed(Protection::kAes128Gcm, CrcKind::kCrc64Ecma, header, payload),
            documented("compressed, aes-128-gcm"));
  Bytes head(wire::kCompressedHeadBytes);
  wire::put_head({.wire_bytes = 53, .frame_crc = 0x073CB483, .plain_digest = 0x91FACA4BC22223AC},
                 head.data());
  EXPECT_EQ(head, Bytes(payload.begin(), payload.begin() + wire::kCompressedHeadBytes));
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

TEST_P(Golden, Parity) {
  const wire::Header header{.type = Type::kParity,
                            .flags = wire::kFlagRaptorQ,
                            .flow_id = 0x8000112233440007,
                            .tx_seq = 7,
                            .send_time_ns = 0x0102030405060709,
                            .offset = 300 * 65536,
                            .object = 2,
                            .block = 3,
                            .repair_id = 258,
                            .block_digest = 0x995DC9BBDF1939FA};
  Bytes payload(64);
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc64Ecma, header, payload), documented("parity"));
  EXPECT_EQ(sealed(Protection::kAes128Gcm, CrcKind::kCrc64Ecma, header, payload),
            documented("parity, aes-128-gcm"));
}

TEST_P(Golden, Status) {
  const wire::Header header = header_of(Type::kStatus, 41, 0x1112131415161718, 0, 0);
  const Bytes payload = encoded(some_status());
  EXPECT_EQ(payload, documented("status, payload"));
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc32c, header, payload), documented("status"));
  EXPECT_EQ(sealed(Protection::kAes128Gcm, CrcKind::kCrc32c, header, payload), documented("status"));
  EXPECT_EQ(sealed(Protection::kAes256Gcm, CrcKind::kCrc32c, header, payload),
            documented("status, aes-256-gcm"));
}

TEST_P(Golden, StatusWithHoles) {
  wire::Status status = some_status();
  status.holes_count = 2;
  status.holes[0] = {.object = 2, .told = 64, .number = 302, .run_count = 3};
  status.holes[1] = {.object = 2, .told = 20, .number = 304, .run_count = 1};
  status.hole_runs[0] = {.first = 0, .count = 1};
  status.hole_runs[1] = {.first = 5, .count = 3};
  status.hole_runs[2] = {.first = 63, .count = 1};
  status.hole_runs[3] = {.first = 18, .count = 2};
  EXPECT_EQ(encoded(status), documented("status, holes, payload"));
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc32c, header_of(Type::kStatus, 42, 0x1112131415161719, 0, 0),
                   encoded(status)),
            documented("status, holes"));
}

TEST_P(Golden, Probe) {
  wire::Header header = header_of(Type::kProbe, 7, 0x0102030405060A0B, 4, 42);
  header.offset = 3;
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc32c, header, {}), documented("probe"));
  EXPECT_EQ(sealed(Protection::kAes256Gcm, CrcKind::kCrc32c, header, {}), documented("probe, aes-256-gcm"));
}

TEST_P(Golden, Echo) {
  wire::Header header = header_of(Type::kEcho, 9, 0x0102030405060C0D, 4, 42);
  header.credit_wanted = 0;
  const Bytes payload = {0xDE, 0xAD, 0xBE, 0xEF, 0x00, 0x11, 0x22};
  EXPECT_EQ(sealed(Protection::kCrc, CrcKind::kCrc64Ecma, header, payload), documented("echo"));
  EXPECT_EQ(sealed(Protection::kAes128Gcm, CrcKind::kCrc64Ecma, header, payload), documented("echo"));
  EXPECT_EQ(sealed(Protection::kAes256Gcm, CrcKind::kCrc64Ecma, header, payload),
            documented("echo, aes-256-gcm"));
  header = header_of(Type::kEcho, 9, 0x1112131415161718, 0, 0);
  header.credit_wanted = 0;
  header.flags = wire::kFlagReflected;
  EXPECT_EQ(sealed(Protection::kAes128Gcm, CrcKind::kCrc64Ecma, header, payload),
            documented("echo, reflected"));
}

// The same names and digits as in the document's list.
TEST(Keys, AreDerivedAsDocumented) {
  const std::string document = base::wire_document();
  const auto expect = [&](const std::string& name, std::span<const uint8_t> bytes) {
    std::string line = name + std::string(30 - name.size(), ' ');
    for (const uint8_t byte : bytes) {
      line += "0123456789abcdef"[byte >> 4];
      line += "0123456789abcdef"[byte & 15];
    }
    EXPECT_NE(document.find(line + "\n"), std::string::npos) << line;
  };
  const auto expanded = [](const Secret& from, std::string_view info, size_t bytes) {
    std::vector<uint8_t> out(bytes);
    expand(from, info, out);
    return out;
  };
  Secret data;
  expand(documented_secret(), "sluice data s2d", data);
  Secret next;
  expand(data, "sluice next", next);
  Secret probe;
  expand(documented_secret(), "sluice probe s2d", probe);
  Secret status;
  expand(documented_secret(), "sluice status d2s", status);
  expect("data, epoch 0, secret", data);
  expect("data, epoch 0, AES-128 key", expanded(data, "sluice key", 16));
  expect("data, epoch 0, AES-256 key", expanded(data, "sluice key", 32));
  expect("data, epoch 0, IV", expanded(data, "sluice iv", 12));
  expect("data, epoch 1, secret", next);
  expect("data, epoch 1, AES-128 key", expanded(next, "sluice key", 16));
  expect("data, epoch 1, IV", expanded(next, "sluice iv", 12));
  expect("probe, epoch 0, secret", probe);
  expect("probe, epoch 0, AES-128 key", expanded(probe, "sluice key", 16));
  expect("probe, epoch 0, IV", expanded(probe, "sluice iv", 12));
  expect("status, epoch 0, secret", status);
  expect("status, epoch 0, AES-128 key", expanded(status, "sluice key", 16));
  expect("status, epoch 0, IV", expanded(status, "sluice iv", 12));
  Secret echo;
  expand(documented_secret(), "sluice echo s2d", echo);
  Secret back;
  expand(documented_secret(), "sluice echo d2s", back);
  expect("echo, epoch 0, secret", echo);
  expect("echo, epoch 0, AES-128 key", expanded(echo, "sluice key", 16));
  expect("echo, epoch 0, IV", expanded(echo, "sluice iv", 12));
  expect("echoed, epoch 0, secret", back);
  expect("echoed, epoch 0, AES-128 key", expanded(back, "sluice key", 16));
  expect("echoed, epoch 0, IV", expanded(back, "sluice iv", 12));
}

}  // namespace
}  // namespace sluice::seal
