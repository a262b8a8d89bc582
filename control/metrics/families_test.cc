// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/families.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::metrics {
namespace {

using transfer::ViewState;

struct Scrape {
  NodeFigures node{.name = "alpha", .version = "1"};
  Labelled labelled{kLabelledMax};
  std::vector<ExportSpace> exports;
  ProcessFigures process;

  std::vector<Family> take() {
    labelled.update(node.sessions);
    return families_of(
        {.node = &node, .labelled = &labelled, .node_age_s = 0.5, .exports = exports, .process = process});
  }
};

SessionFigures& add_session(Scrape& scrape, const std::string& id,
                            ViewState state = ViewState::kTransferring) {
  SessionFigures& session = scrape.node.sessions.emplace_back();
  session.view.id = id;
  session.view.state = state;
  session.view.role = transfer::Role::kSource;
  session.view.peer = "beta";
  session.view.rate.mode = "adaptive";
  session.view.started_unix_ns = 1'700'000'000'500'000'000;
  return session;
}

// The value of the one sample with these labels; fails when there is none.
double value(const std::vector<Family>& families, const std::string& name,
             const std::vector<std::string>& labels = {}) {
  for (const Family& family : families) {
    if (family.info->name != name) continue;
    for (const Sample& sample : family.samples) {
      if (sample.labels == labels) return sample.value;
    }
  }
  ADD_FAILURE() << "no " << name;
  return -1;
}

size_t samples(const std::vector<Family>& families, const std::string& name) {
  for (const Family& family : families) {
    if (family.info->name == name) return family.samples.size();
  }
  return 0;
}

TEST(Families, TellWhenCertificatesEnd) {
  Scrape scrape;
  scrape.node.expiries = {{"own", "alpha", 1'800'000'000}, {"ca", "CN=CA\nx", 1'900'000'000}};
  const auto families = scrape.take();
  EXPECT_EQ(value(families, "sluice_certificate_expiry_timestamp_seconds", {"own", "alpha"}), 1'800'000'000);
  EXPECT_EQ(samples(families, "sluice_certificate_expiry_timestamp_seconds"), 2U);
  scrape.node.expiries.resize(1000);
  EXPECT_EQ(samples(scrape.take(), "sluice_certificate_expiry_timestamp_seconds"), kExpiriesMax);
}

TEST(Families, TellWhatBecameOfCallers) {
  Scrape scrape;
  EXPECT_EQ(samples(scrape.take(), "sluice_control_connections_total"), 0U) << "it does not listen";
  scrape.node.callers = {.trusted = 1, .refused = 2, .failed = 3, .timed_out = 4, .let_go = 5, .waited = 6};
  const auto families = scrape.take();
  const std::string name = "sluice_control_connections_total";
  EXPECT_EQ(samples(families, name), 5U);
  double number = 1;
  for (const char* outcome : {"trusted", "refused", "failed", "timed_out", "let_go"})
    EXPECT_EQ(value(families, name, {outcome}), number++) << outcome;
  EXPECT_EQ(value(families, "sluice_control_handshakes_delayed_total"), 6);
}

TEST(Families, TellTheWorkersCountersInBaseUnits) {
  Scrape scrape;
  scrape.node.dataplane = DataplaneFigures{.port = "udp",
                                           .hugepages = false,
                                           .fallback_for = "0000:01:00.0",
                                           .falls = 3,
                                           .heartbeat_age_ns = 100'000'000,
                                           .workers = {}};
  for (uint64_t worker = 0; worker < 2; ++worker) {
    WorkerCounters& counters = scrape.node.dataplane->workers.emplace_back();
    for (uint32_t i = 0; i < board::kCounters; ++i) counters[i] = 1000 * (worker + 1) + i;
    counters[static_cast<size_t>(board::Counter::disk_read_ns)] = 2'500'000'000;
  }
  const auto families = scrape.take();
  EXPECT_EQ(value(families, "sluice_dataplane_attached"), 1);
  EXPECT_DOUBLE_EQ(value(families, "sluice_dataplane_heartbeat_age_seconds"), 0.1);
  EXPECT_EQ(value(families, "sluice_port_fallback", {"0000:01:00.0"}), 1);
  EXPECT_EQ(value(families, "sluice_port_falls_total"), 3);
  EXPECT_EQ(value(families, "sluice_port_rx_frames_total", {"udp", "0"}), 1000);
  EXPECT_EQ(value(families, "sluice_port_rx_frames_total", {"udp", "1"}), 2000);
  EXPECT_DOUBLE_EQ(value(families, "sluice_disk_read_seconds_total", {"1"}), 2.5);
  const auto crc = static_cast<size_t>(board::Counter::rx_drop_crc);
  EXPECT_EQ(value(families, "sluice_port_rx_drops_total", {"udp", "0", "crc"}),
            1000 + static_cast<double>(crc));
  size_t all = 0;
  for (const Family& family : families) {
    if (family.info->labels.size() > 1 && family.info->labels[1] == "worker") all += family.samples.size();
    if (family.info->labels.size() == 1 && family.info->labels[0] == "worker") all += family.samples.size();
  }
  EXPECT_EQ(all, 2 * board::kCounters) << "each counter of each worker";
}

TEST(Families, WithoutADataplaneTellNothingOfItsCounters) {
  Scrape scrape;
  const auto families = scrape.take();
  EXPECT_EQ(value(families, "sluice_dataplane_attached"), 0);
  EXPECT_EQ(samples(families, "sluice_port_rx_frames_total"), 0U);
  EXPECT_EQ(samples(families, "sluice_dataplane_heartbeat_age_seconds"), 0U);
  EXPECT_EQ(value(families, "sluice_sessions", {"transferring"}), 0)
      << "a state without sessions is told as 0";
  EXPECT_EQ(value(families, "sluice_snapshot_age_seconds"), 0.5);
}

TEST(Families, BeforeTheLoopHasAnsweredTellOnlyOfTheProcess) {
  const std::vector<ExportSpace> exports = {{.name = "data", .size_bytes = 100, .free_bytes = 30}};
  const ProcessFigures process{.cpu_s = 1.5, .open_fds = 7};
  const auto families = families_of({.exports = exports, .process = process});
  EXPECT_EQ(value(families, "process_cpu_seconds_total"), 1.5);
  EXPECT_EQ(value(families, "sluice_export_free_bytes", {"data"}), 30);
  EXPECT_EQ(samples(families, "sluice_dataplane_attached"), 0U);
  EXPECT_EQ(samples(families, "sluice_snapshot_age_seconds"), 0U);
}

TEST(Families, TellStateConditionAndDeadlineOfASession) {
  Scrape scrape;
  transfer::View& view = add_session(scrape, "1f").view;
  view.bytes_total = 100;
  view.names.listing = true;
  view.summary.bytes_done = 40;
  view.summary.rtt_ns = 20'000'000;
  view.rate.limit_bps = 8'000;
  view.rate.condition = rate::Condition::kYielding;
  view.bottleneck.now.cause = verdict::Cause::kDestinationDisk;
  view.deadline = transfer::DeadlineView{.deadline_unix_ns = 1'800'000'000'000'000'000, .chance = 0.25};
  const auto families = scrape.take();
  EXPECT_EQ(value(families, "sluice_session_info", {"1f", "beta", "send", "adaptive"}), 1);
  EXPECT_EQ(value(families, "sluice_session_listing", {"1f"}), 1);
  EXPECT_EQ(value(families, "sluice_session_state", {"1f", "transferring"}), 1);
  EXPECT_EQ(value(families, "sluice_session_state", {"1f", "paused"}), 0);
  EXPECT_EQ(value(families, "sluice_session_rate_condition", {"1f", "yielding"}), 1);
  EXPECT_EQ(value(families, "sluice_session_rate_condition", {"1f", "running"}), 0);
  EXPECT_EQ(value(families, "sluice_session_bottleneck", {"1f", "destination disk"}), 1);
  EXPECT_EQ(value(families, "sluice_session_bottleneck", {"1f", "network"}), 0);
  EXPECT_EQ(samples(families, "sluice_session_bottleneck"), verdict::kCauseNames.size() - 1)
      << "\"none\" is all 0";
  EXPECT_EQ(value(families, "sluice_session_rate_limit_bytes_per_second", {"1f"}), 1000);
  EXPECT_DOUBLE_EQ(value(families, "sluice_session_rtt_seconds", {"1f"}), 0.02);
  EXPECT_DOUBLE_EQ(value(families, "sluice_session_start_timestamp_seconds", {"1f"}), 1'700'000'000.5);
  EXPECT_DOUBLE_EQ(value(families, "sluice_session_deadline_timestamp_seconds", {"1f"}), 1'800'000'000);
  EXPECT_EQ(value(families, "sluice_session_deadline_chance_ratio", {"1f"}), 0.25);
  EXPECT_EQ(samples(families, "sluice_session_held"), 0U);
}

TEST(Families, NameTheErrorThatHoldsASession) {
  Scrape scrape;
  add_session(scrape, "1f", ViewState::kPaused).view.error =
      Error{ErrorCode::kNoSpace, "/secret/name is full"};
  const auto families = scrape.take();
  EXPECT_EQ(value(families, "sluice_session_held", {"1f", "no_space"}), 1);
}

TEST(Families, TellOfALaneWhatItsSideKnows) {
  Scrape scrape;
  SessionFigures& session = add_session(scrape, "1f");
  session.lanes.push_back({.lane = 0,
                           .sends = true,
                           .rate_bps = 80,
                           .credit_extents = 3,
                           .blocked = {.source_ns = 4'000'000'000}});
  session.lanes.push_back({.lane = 1, .sends = false, .payload_bytes = 9, .late_chunks = 5});
  const auto families = scrape.take();
  EXPECT_EQ(value(families, "sluice_lane_rate_bytes_per_second", {"1f", "0"}), 10);
  EXPECT_EQ(value(families, "sluice_lane_credit_extents", {"1f", "0"}), 3);
  EXPECT_EQ(value(families, "sluice_lane_blocked_seconds_total", {"1f", "0", "source"}), 4);
  EXPECT_EQ(value(families, "sluice_lane_payload_bytes_total", {"1f", "1"}), 9);
  EXPECT_EQ(value(families, "sluice_lane_late_chunks_total", {"1f", "1"}), 5);
  EXPECT_EQ(samples(families, "sluice_lane_rate_bytes_per_second"), 1U);
  EXPECT_EQ(samples(families, "sluice_lane_rtt_seconds"), 0U) << "it is not known yet";
}

TEST(Families, TellOfNoFileWhateverASessionKnows) {
  Scrape scrape;
  SessionFigures& session = add_session(scrape, "1f", ViewState::kPaused);
  session.view.files.push_back({.source = "/secret/a", .destination = "/secret/b"});
  session.view.waiting_for = "/secret/c";
  session.view.error = Error{ErrorCode::kStorage, "/secret/d: Input/output error"};
  for (const Family& family : scrape.take()) {
    for (const Sample& sample : family.samples) {
      for (const std::string& label : sample.labels)
        EXPECT_EQ(label.find("secret"), std::string::npos) << label;
    }
  }
}

TEST(Families, WordsOfOthersStayOnTheirLineAndShort) {
  Scrape scrape;
  add_session(scrape, "1f").view.peer = "a\nb" + std::string(500, 'x');
  for (const Family& family : scrape.take()) {
    if (family.info->name != "sluice_session_info") continue;
    const std::string& peer = family.samples.front().labels[1];
    EXPECT_EQ(peer.find('\n'), std::string::npos);
    EXPECT_LE(peer.size(), 128U);
  }
}

TEST(Families, OfTheFullestNodeAreBounded) {
  Scrape scrape;
  scrape.node.dataplane = DataplaneFigures{.port = "udp"};
  scrape.node.dataplane->workers.resize(board::kWorkersMax);
  for (int i = 0; i < 64; ++i) scrape.exports.push_back({.name = "export" + std::to_string(i)});
  for (int i = 0; i < 4096 + 64; ++i) {
    SessionFigures& session = add_session(scrape, "session" + std::to_string(i), ViewState::kPaused);
    session.view.error = Error{ErrorCode::kStorage, ""};
    session.view.rate.condition = rate::Condition::kRunning;
    session.view.deadline = transfer::DeadlineView{.chance = 1};
    session.view.summary.rtt_ns = 1;
    session.view.rate.limit_bps = 1;
    if (i >= static_cast<int>(kLabelledMax)) continue;
    for (uint32_t lane = 0; lane < board::kFlowsMax / kLabelledMax; ++lane)
      session.lanes.push_back({.lane = lane, .sends = true, .rtt_ns = 1, .rtt_min_ns = 1});
  }
  size_t all = 0;
  std::set<std::pair<std::string, std::vector<std::string>>> series;
  const auto families = scrape.take();
  for (const Family& family : families) {
    all += family.samples.size();
    for (const Sample& sample : family.samples) {
      ASSERT_EQ(sample.labels.size(), family.info->labels.size()) << family.info->name;
      EXPECT_TRUE(series.emplace(family.info->name, sample.labels).second)
          << family.info->name << " is there twice";
    }
  }
  EXPECT_LE(all, kSamplesMax);
  EXPECT_GT(all, kSamplesMax * 3 / 4) << "the bound that is told should be near what can be";
  EXPECT_EQ(samples(families, "sluice_session_size_bytes"), kLabelledMax);
  EXPECT_EQ(samples(families, "sluice_session_payload_bytes_total"), kLabelledMax + 1)
      << "and session=\"other\"";
  EXPECT_EQ(value(families, "sluice_sessions_unlabelled"), 4096 + 64 - static_cast<double>(kLabelledMax));
}

}  // namespace
}  // namespace sluice::metrics
