// One datagram that is right in form, seal, address and flow, and false in one field: data under `crc` of
// a stranger, and else of a peer who lies, for he has the keys. The transfer goes on as if nothing had
// been, by the next true datagrams, and the false one is counted.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane::testing {
namespace {

constexpr uint64_t kFar = uint64_t{1} << 40;
constexpr uint32_t kChunk = 8192;

class Forgery : public Lane {
 protected:
  // As the other side would send it. The seal is made right.
  Frame frame_of(Side& from, Side& to, wire::Header header, std::span<const uint8_t> payload) {
    header.flow_id = 0xABCDEF0000000000ULL | kRxSlot;
    header.length = static_cast<uint32_t>(payload.size());
    const net::FrameTemplate front(net::Address::of(from.port.info().ip4), 47000,
                                   net::Address::of(to.port.info().ip4), 47000);
    Frame frame(front.bytes() + wire::kHeaderBytes + payload.size());
    front.write(frame.data(), static_cast<uint32_t>(wire::kHeaderBytes + payload.size()));
    uint8_t* const at = frame.data() + front.bytes();
    tap_.seal(crc_).seal(header, payload, std::span<uint8_t, wire::kHeaderBytes>(at, wire::kHeaderBytes),
                         at + wire::kHeaderBytes);
    return frame;
  }
  void forge_status(const wire::Status& status, uint64_t seq) {
    std::vector<uint8_t> payload(wire::kStatusBytesMax);
    payload.resize(wire::encode_status(status, payload).bytes);
    a_.port.frames().arrived.push_back(
        frame_of(b_, a_, {.type = wire::Type::kStatus, .tx_seq = seq, .send_time_ns = now_ns_}, payload));
  }
  void forge(wire::Header header, std::span<const uint8_t> payload = {}) {
    // Ahead of the true ones, each of which would come as a copy else.
    if (header.type == wire::Type::kProbe && header.offset == 0) header.offset = 400 + forged_probes_++;
    b_.port.frames().arrived.push_back(frame_of(a_, b_, header, payload));
  }
  // What the true peer would say now.
  wire::Status true_status() {
    const auto& rx = b_.board().flows[kRxSlot].state;
    wire::Status status;
    status.echo_send_time_ns = now_ns_ - 50'000;
    status.received_end = rx.highest_data_end;
    status.credit_extents = rx.credit_extents;
    status.bytes_received = rx.bytes;
    status.datagrams_received = rx.datagrams;
    status.done_end = static_cast<uint32_t>(rx.extents_done);
    return status;
  }
  // The next one's, which comes too late then; another one for each of several.
  uint64_t status_seq() {
    forged_statuses_ = std::max<uint64_t>(forged_statuses_ + 1, b_.board().flows[kRxSlot].state.statuses);
    return forged_statuses_;
  }
  wire::Header true_header(wire::Type type) {
    const auto& tx = a_.board().flows[kTxSlot].state;
    const auto& rx = b_.board().flows[kRxSlot].state;
    return {.type = type,
            .tx_seq = rx.highest_data_end,
            .send_time_ns = now_ns_,
            .done_seen = static_cast<uint32_t>(tx.extents_done)};
  }

  // A transfer with `strike` in its middle. No NEED comes before 40 ms without progress.
  void begin() {
    data_ = make_source(40 * kExtentBytes);
    open_flows(crc_, kChunk);
    a_.board().flows[kTxSlot].control.rate_bps = 2'000'000'000;
    transfer(10 * kExtentBytes);
  }
  void transfer(uint64_t until) {
    bytes_ = data_.size();
    for (uint32_t step = 0; written_ < until; ++step) {
      ASSERT_LT(step, 40'000U) << written_ << " of " << until;
      feed();
      step_alone();
      if (step % 50 == 0 && detects_) detect_loss();
      handle_events();
      if (ask_for_missing()) ++needs_;
    }
  }
  // All bytes came, nothing is held at the sender any more, and both count the same credit.
  void expect_mended(uint64_t needs = 0) {
    transfer(data_.size());
    run_steps(3000);  // 60 ms
    expect_identical(data_);
    EXPECT_LE(needs_, needs);
    const auto& tx = a_.board().flows[kTxSlot].state;
    const auto& rx = b_.board().flows[kRxSlot].state;
    EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
    EXPECT_EQ(tx.opened_extents, rx.extents_done);
    EXPECT_EQ(tx.credit_extents, rx.credit_extents);
    EXPECT_EQ(rx.credit_extents, rx.extents_done + 4) << "nothing of the credit is lost";
    EXPECT_LT(rx.gaps_reported, 1000U);
    EXPECT_LT(tx.gaps_reported, 1000U);
    EXPECT_LT(rx.probe_end, kFar);
    close_flows();
    expect_counters_add_up(a_);
    expect_counters_add_up(b_);
  }

  Tap tap_;
  uint64_t forged_probes_ = 0;
  uint64_t forged_statuses_ = 0;
  std::vector<uint8_t> data_;
  uint64_t needs_ = 0;
  bool detects_ = true;
};

// ---- statuses ----------------------------------------------------------------------------------

TEST_F(Forgery, EchoInAStatus) {
  begin();
  const uint64_t rtt_ns = a_.board().flows[kTxSlot].state.rtt_ns;
  for (const uint64_t echo_ns : {uint64_t{1}, now_ns_ + kFar, uint64_t{UINT64_MAX}}) {
    wire::Status status = true_status();
    status.echo_send_time_ns = echo_ns;
    forge_status(status, status_seq());
  }
  wire::Status status = true_status();
  status.echo_hold_ns = UINT64_MAX;
  forge_status(status, status_seq());
  step_alone();
  EXPECT_EQ(a_.counter(Counter::rx_false_echo), 4U);
  EXPECT_LT(a_.board().flows[kTxSlot].state.rtt_ns, 2 * rtt_ns);
  expect_mended();
}

TEST_F(Forgery, ReceivedEndInAStatus) {
  begin();
  wire::Status status = true_status();
  status.received_end = kFar;
  status.bytes_received = kFar;
  forge_status(status, status_seq());
  step_alone();
  EXPECT_EQ(a_.counter(Counter::rx_false_received_end), 1U);
  transfer(20 * kExtentBytes);
  EXPECT_LT(a_.board().flows[kTxSlot].state.peer_bytes_received, kFar);
  expect_mended();
}

// That nothing of what is held is missing. Where little is lost no peer tells of holes, so none could take
// that back.
TEST_F(Forgery, HolesInAStatus) {
  begin();
  uint64_t frames = 0;
  on_the_way = [&](Frame&, bool from_a) {
    if (!from_a) return true;
    ++frames;
    if (frames % 50 == 0) {
      wire::Status status = true_status();
      status.holes_count = wire::kStatusHolesMax;
      for (uint32_t i = 0; i < wire::kStatusHolesMax; ++i) {
        status.holes[i] = {.told = wire::kChunksPerExtentMax, .number = 8 + i, .run_count = 1};
        status.hole_runs[i] = {.first = wire::kChunksPerExtentMax - 1, .count = 1};
      }
      forge_status(status, status_seq());
    }
    return frames % 12 != 0;
  };
  transfer(30 * kExtentBytes);
  on_the_way = nullptr;
  expect_mended();
}

TEST_F(Forgery, CreditInAStatus) {
  for (const uint64_t credit : {uint64_t{0}, uint64_t{200}, kFar}) {
    SCOPED_TRACE(credit);
    if (data_.empty()) begin();
    wire::Status status = true_status();
    status.credit_extents = credit;
    forge_status(status, status_seq());
    transfer(written_ + 5 * kExtentBytes);
    EXPECT_LE(a_.board().flows[kTxSlot].state.credit_extents, written_ / kExtentBytes + 5);
  }
  EXPECT_EQ(a_.counter(Counter::rx_false_credit), 1U);
  expect_mended(5);
}

TEST_F(Forgery, NumberOfAStatus) {
  begin();
  for (const uint64_t seq : {uint64_t{1}, status_seq() + 100, status_seq() + 500}) {
    wire::Status status = true_status();
    status.credit_extents = 0;
    forge_status(status, seq);
    step_alone();
    transfer(written_ + 2 * kExtentBytes);
  }
  expect_mended();
}

TEST_F(Forgery, GapsInAStatus) {
  begin();
  const uint64_t next = a_.board().flows[kTxSlot].state.chunks;
  wire::Status status = true_status();
  status.gap_count = 2;
  status.gaps[0] = {next - 3, 2};  // which arrive
  status.gaps[1] = {next + 1000, kFar};
  forge_status(status, status_seq());
  step_alone();
  EXPECT_EQ(a_.counter(Counter::rx_false_gaps), 1U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.gaps_reported, 2U);
  expect_mended();
}

// Of extents that nobody has; of such as are under way, which then are let go too early.
TEST_F(Forgery, DoneListInAStatus) {
  begin();
  for (const uint32_t count : {1U, 64U}) {
    for (const bool held : {false, true}) {
      wire::Status status = true_status();
      const uint32_t first = status.done_end;
      status.done_end += count;
      status.done_back = count;
      status.run_count = 1;
      status.runs[0] = {.object = held ? 0U : 99U, .count = count, .first = held ? first + 2 : 7};
      forge_status(status, status_seq());
      transfer(written_ + 5 * kExtentBytes);
    }
  }
  EXPECT_GE(a_.counter(Counter::rx_false_done_lists), 2U);
  expect_mended(20);
}

TEST_F(Forgery, FirstNumberOfADoneListInAStatus) {
  begin();
  for (const uint32_t first : {5U, 1000U, UINT32_MAX}) {
    wire::Status status = true_status();
    status.done_end = first + 3;
    status.done_back = 3;
    status.run_count = 1;
    status.runs[0] = {.object = 0, .count = 3, .first = 1000};
    forge_status(status, status_seq());
    transfer(written_ + 3 * kExtentBytes);
  }
  expect_mended();
}

// ---- data and probes ---------------------------------------------------------------------------

TEST_F(Forgery, NumberOfADatum) {
  begin();
  const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
  for (const uint64_t seq : {kFar, uint64_t{UINT64_MAX}, SeqWindow::kSeqEnd - 1}) {
    wire::Header header = true_header(wire::Type::kData);
    header.tx_seq = seq;
    forge(header, payload);
    forge(header, payload);  // and its copy
    transfer(written_ + 2 * kExtentBytes);
  }
  EXPECT_EQ(b_.counter(Counter::rx_drop_far_tx_seq), 6U);
  expect_mended();
  EXPECT_EQ(b_.counter(Counter::rx_window_restarts), 0U);
}

// The true chunk that has this number is not lost by it.
TEST_F(Forgery, NumberThatIsTheNextOnes) {
  begin();
  wire::Header header = true_header(wire::Type::kData);
  header.object = 55;  // which is not open
  for (uint64_t i = 0; i < 10; ++i) {
    header.tx_seq = b_.board().flows[kRxSlot].state.highest_data_end + i;
    forge(header, std::vector<uint8_t>(kChunk));
  }
  transfer(written_ + 2 * kExtentBytes);
  EXPECT_EQ(b_.counter(Counter::rx_drop_unknown_object), 10U);
  expect_mended();
}

// Two that agree move the window; when nothing else comes than what is old by that, it goes back.
TEST_F(Forgery, NumbersOfTwoData) {
  begin();
  detects_ = false;  // the detector takes all before the false ones for settled
  wire::Header header = true_header(wire::Type::kData);
  const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
  for (header.tx_seq = kFar; header.tx_seq < kFar + 2; ++header.tx_seq) forge(header, payload);
  transfer(written_ + 10 * kExtentBytes);
  EXPECT_EQ(b_.counter(Counter::rx_window_restarts), 1U);
  transfer(data_.size());
  expect_identical(data_);
}

TEST_F(Forgery, SendTimeOfADatum) {
  begin();
  const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
  for (const uint64_t time_ns : {uint64_t{1}, now_ns_ + kFar, uint64_t{UINT64_MAX}}) {
    wire::Header header = true_header(wire::Type::kData);
    header.send_time_ns = time_ns;
    forge(header, payload);
    transfer(written_ + 2 * kExtentBytes);
  }
  EXPECT_LT(a_.board().flows[kTxSlot].state.rtt_ns, 10'000'000U);
  expect_mended();
}

TEST_F(Forgery, PlaceAndLengthOfADatum) {
  begin();
  wire::Header header = true_header(wire::Type::kData);
  for (const uint64_t offset : {uint64_t{1}, kFar, uint64_t{UINT64_MAX}}) {
    header.offset = offset;
    forge(header, std::vector<uint8_t>(kChunk));
  }
  header.offset = 0;
  forge(header, std::vector<uint8_t>(kChunk - 4));
  forge(header);
  step_alone();
  EXPECT_EQ(b_.counter(Counter::rx_drop_out_of_range), 5U);
  expect_mended();
}

// The receiver would not list again what the sender has never heard of.
TEST_F(Forgery, DoneSeenOfADatumOrAProbe) {
  begin();
  for (const auto type : {wire::Type::kData, wire::Type::kProbe}) {
    for (const uint32_t done_seen : {0U, UINT32_MAX, 0x8000'0000U}) {
      const std::vector<uint8_t> payload(data_.begin(), data_.begin() + kChunk);
      wire::Header header = true_header(type);
      header.done_seen = done_seen;
      forge(header,
            type == wire::Type::kData ? std::span<const uint8_t>(payload) : std::span<const uint8_t>());
      transfer(written_ + kExtentBytes);
    }
    for (int i = 0; i < 200; ++i) {  // whatever was completed just now
      wire::Header header = true_header(wire::Type::kProbe);
      header.done_seen = static_cast<uint32_t>(b_.board().flows[kRxSlot].state.extents_done);
      forge(header);
      feed();
      step_alone();
      handle_events();
    }
  }
  EXPECT_GT(b_.counter(Counter::rx_false_done_seen), 0U);
  expect_mended();
}

TEST_F(Forgery, NumberOfAProbe) {
  begin();
  for (const uint64_t seq : {uint64_t{100'000}, uint64_t{1} << 20, uint64_t{1} << 22}) {
    wire::Header header = true_header(wire::Type::kProbe);
    header.tx_seq = seq;
    forge(header);
    transfer(written_ + 2 * kExtentBytes);
  }
  EXPECT_EQ(b_.counter(Counter::rx_far_probes), 3U);
  EXPECT_LT(b_.board().flows[kRxSlot].state.probe_end, 100'000U);
  expect_mended();
}

TEST_F(Forgery, FieldsThatATypeDoesNotUse) {
  begin();
  wire::Header probe = true_header(wire::Type::kProbe);
  probe.object = 1;
  forge(probe);
  probe = true_header(wire::Type::kProbe);
  probe.flags = wire::kFlagRepair;
  forge(probe);
  Frame frame = frame_of(a_, b_, true_header(wire::Type::kProbe), {});
  frame[frame.size() - wire::kHeaderBytes + 4] = 1;  // key_epoch
  b_.port.frames().arrived.push_back(frame);
  step_alone();
  EXPECT_EQ(b_.counter(Counter::rx_drop_reserved_not_zero), 2U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_bad_key_epoch), 1U);
  expect_mended();
}

// ---- what honest peers do ----------------------------------------------------------------------

// All data of a while are lost, and then nothing but probes and retransmissions can come.
TEST_F(Forgery, AnHonestLeapIsBelieved) {
  data_ = make_source(40 * kExtentBytes);
  open_flows(crc_, 256);
  a_.board().flows[kTxSlot].control.rate_bps = 2'000'000'000;
  transfer(10 * kExtentBytes);
  for (int i = 0; i < 1000; ++i) {
    feed();
    step_alone();
    b_.port.frames().arrived.clear();
  }
  expect_mended(1);
}

TEST_F(Forgery, RepeatsToASilentSenderBecomeRare) {
  begin();
  transfer(data_.size());
  run_steps(3000);
  const auto& statuses = b_.board().flows[kRxSlot].state.statuses;
  b_.board().flows[kRxSlot].control.settled_below = 0;
  // The sender has taken all, and never says so, as it has nothing to send.
  const uint64_t before = statuses;
  run_steps(50'000);  // a second
  EXPECT_LE(statuses - before, 120U);
  EXPECT_GE(statuses - before, 80U);
}

}  // namespace
}  // namespace sluice::lane::testing
