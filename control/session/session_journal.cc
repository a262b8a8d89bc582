// What of a session is in the journal, and how it comes back from there.
// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/session/destination.h"
#include "control/session/session.h"
#include "control/session/source.h"

namespace sluice::control {
namespace {

journal::Agreement to_record(const Agreement& agreement) {
  journal::Agreement record;
  record.set_lanes(agreement.lanes);
  record.set_chunk_bytes(agreement.chunk_bytes);
  record.set_extent_bytes(agreement.extent_bytes);
  record.set_partition_bytes(agreement.partition_bytes);
  record.set_crc_kind(static_cast<uint32_t>(agreement.crc_kind));
  record.set_rate_bps(agreement.rate_bps);
  record.set_udp_checksum(agreement.udp_checksum);
  record.set_discard(agreement.discard);
  record.set_local_ip(agreement.local_ip.data(), agreement.local_ip.size());
  record.set_peer_ip(agreement.peer_ip.data(), agreement.peer_ip.size());
  for (const uint16_t port : agreement.peer_ports) record.add_peer_ports(port);
  return record;
}

Agreement from_record(const journal::Agreement& record) {
  Agreement agreement;
  agreement.lanes = record.lanes();
  agreement.chunk_bytes = record.chunk_bytes();
  agreement.extent_bytes = record.extent_bytes();
  agreement.partition_bytes = record.partition_bytes();
  agreement.crc_kind = static_cast<wire::CrcKind>(record.crc_kind());
  agreement.rate_bps = record.rate_bps();
  agreement.udp_checksum = record.udp_checksum();
  agreement.discard = record.discard();
  const auto copy = [](const std::string& bytes, std::array<uint8_t, 16>* ip) {
    if (bytes.size() == ip->size()) std::copy(bytes.begin(), bytes.end(), ip->begin());
  };
  copy(record.local_ip(), &agreement.local_ip);
  copy(record.peer_ip(), &agreement.peer_ip);
  for (const uint32_t port : record.peer_ports()) agreement.peer_ports.push_back(static_cast<uint16_t>(port));
  return agreement;
}

SessionRequest request_of(const journal::SessionRecord& record) {
  const journal::Request& saved = record.request();
  SessionRequest request;
  request.send = record.source();
  request.options.lanes = std::max(1U, saved.lanes());
  request.options.rate_bps = saved.rate_bps();
  request.options.crc_kind = static_cast<wire::CrcKind>(saved.crc_kind());
  request.options.overwrite = saved.overwrite();
  request.options.family = static_cast<IpFamily>(saved.family());
  request.options.chunk_bytes = saved.chunk_bytes();
  request.source_paths.assign(saved.source_paths().begin(), saved.source_paths().end());
  request.destination = saved.destination();
  return request;
}

// Whether a record makes sense: it may come from a damaged or edited file.
bool good(const journal::SessionRecord& record, const std::vector<SavedFile>& files) {
  const journal::Agreement& agreement = record.agreement();
  const uint32_t extent_bytes = agreement.extent_bytes();
  const bool agreed = extent_bytes >= 65536 && extent_bytes <= wire::kExtentBytesMax &&
                      (extent_bytes & (extent_bytes - 1)) == 0 && agreement.crc_kind() <= 2 &&
                      agreement.partition_bytes() >= extent_bytes;
  uint64_t extents = 0;
  bool sized = agreed;
  for (const SavedFile& file : files) {
    sized = sized && file.record.size() <= kFileBytesMax;
    if (sized) extents += file.record.size() / extent_bytes;
  }
  sized = sized && extents <= kExtentsMax;
  return (files.empty() || sized) && files.size() <= kFilesMax && record.request().crc_kind() <= 2 &&
         record.flows_size() <= static_cast<int>(kLanesMax);
}

}  // namespace

journal::SessionRecord Session::record() const {
  using Record = journal::SessionRecord;
  Record record;
  record.set_id(id_);
  record.set_initiator(initiator_);
  record.set_source(is_source_);
  record.set_peer(peer_name_);
  record.set_started_unix_ns(started_unix_ns_);
  record.set_state(!ended_                                 ? (paused_ ? Record::PAUSED : Record::ACTIVE)
                   : !error_                               ? Record::SUCCEEDED
                   : error_->code == ErrorCode::kCancelled ? Record::CANCELLED
                                                           : Record::FAILED);
  const std::optional<Error>& error = ended_ ? error_ : held_;
  if (error) {
    record.set_error_code(static_cast<uint32_t>(error->code));
    record.set_error(error->message);
  }
  record.set_peer_unaware(peer_unaware_ && ended_);
  if (request_) {
    journal::Request* saved = record.mutable_request();
    const Options& options = request_->options;
    for (const std::string& path : request_->source_paths) saved->add_source_paths(path);
    saved->set_destination(request_->destination);
    saved->set_lanes(options.lanes);
    saved->set_rate_bps(options.rate_bps);
    saved->set_crc_kind(static_cast<uint32_t>(options.crc_kind));
    saved->set_overwrite(options.overwrite);
    saved->set_family(static_cast<uint32_t>(options.family));
    saved->set_chunk_bytes(options.chunk_bytes);
  }
  if (began_) *record.mutable_agreement() = to_record(agreement_);
  for (const Lane& lane : lanes_) {
    if (!lane.answered || lane.open_status != 0 || ended_) continue;
    journal::Flow* flow = record.add_flows();
    flow->set_slot(lane.grant.slot);
    flow->set_flow_id(lane.flow_id);
    flow->set_credit(lane.credit);
    flow->set_local_port(lane.grant.local_port);
  }
  record.set_board_generation(context_->board->generation());
  record.set_board_session(slot_.value_or(0));
  *record.mutable_figures() = snapshot().SerializeAsString();
  return record;
}

asio::awaitable<Status> Session::write_journal(journal::Batch batch, journal::Durability durability) {
  auto work = [context = context_, batch = std::move(batch), durability] {
    return context->journal->write(batch, durability);
  };
  co_return co_await in_pool(context_, std::move(work));
}

asio::awaitable<Status> Session::journal_session(journal::Durability durability) {
  journal::Batch batch;
  batch.sessions.push_back(record());
  co_return co_await write_journal(std::move(batch), durability);
}

// From here on the session can go on after anything.
asio::awaitable<Status> Session::journal_files() {
  began_ = true;
  journal::Batch batch;
  batch.sessions.push_back(record());
  uint32_t object = 0;
  for (journal::FileRecord& file : end_->records()) batch.files.push_back({id_, object++, std::move(file)});
  const Status status = co_await write_journal(std::move(batch), journal::Durability::kProcess);
  if (status && failed()) co_return *attempt_error_;
  co_return status;
}

// Nothing of the files has been moved, or it is worth nothing: the next attempt begins with a handshake.
asio::awaitable<void> Session::forget_files() {
  co_await end_->release(false);
  end_.reset();
  if (!std::exchange(began_, false)) co_return;
  journal::Batch batch;
  batch.sessions.push_back(record());
  batch.forget.push_back(id_);
  const Status status = co_await write_journal(std::move(batch), journal::Durability::kPower);
  if (!status) spdlog::error("{}: {}", log_name(), status.error().message);
}

asio::awaitable<void> Session::journal_end() {
  if (!began_ && !initiator_) co_return;  // the peer may begin it once more
  journal::Batch batch;
  batch.sessions.push_back(record());
  batch.end.push_back(id_);
  uint32_t object = 0;
  if (end_ && began_) {
    for (journal::FileRecord& file : end_->records()) batch.files.push_back({id_, object++, std::move(file)});
  }
  const Status status = co_await write_journal(std::move(batch), journal::Durability::kProcess);
  if (!status) spdlog::error("{}: {}", log_name(), status.error().message);
}

std::shared_ptr<Session> Session::restore(std::shared_ptr<Context> context, SavedSession saved,
                                          std::optional<identity::Peer> peer) {
  const journal::SessionRecord& record = saved.record;
  auto session = std::make_shared<Session>(Token(), context, record.id());
  Session& s = *session;
  s.initiator_ = record.initiator();
  s.is_source_ = record.source();
  s.peer_name_ = record.peer();
  s.peer_ = std::move(peer);
  s.started_unix_ns_ = record.started_unix_ns();
  s.paused_ = record.state() == journal::SessionRecord::PAUSED;
  if (s.paused_ && record.error_code() != 0) {
    s.held_ = Error{static_cast<ErrorCode>(record.error_code()), record.error()};
  }
  s.contacted_ = true;
  api::Session figures;
  if (figures.ParseFromString(record.figures())) s.saved_bytes_done_ = figures.bytes_done();
  if (s.initiator_) s.request_ = request_of(record);
  if (!good(record, saved.files)) {
    s.error_ = Error{ErrorCode::kStorage, "the journal's record of this session is damaged: begin another"};
    return session;
  }
  if (s.initiator_ && !s.peer_) {
    s.error_ =
        Error{ErrorCode::kPeerUntrusted,
              "node " + record.peer() + " is not known here any more: 'sluice node trust' it, begin again"};
    return session;
  }
  if (saved.files.empty()) return session;
  s.began_ = true;
  s.agreement_ = from_record(record.agreement());
  Result<std::unique_ptr<DataEnd>> end = s.is_source_ ? Source::restore(s, std::move(saved.files))
                                                      : Destination::restore(s, std::move(saved.files));
  if (!end) {
    s.error_ = end.error();
    return session;
  }
  s.end_ = std::move(*end);
  if (record.flows_size() == 0) return session;
  Claim claim{.board_generation = record.board_generation(), .session = record.board_session()};
  for (const journal::Flow& flow : record.flows()) {
    const FlowGrant grant{.slot = flow.slot(), .local_port = static_cast<uint16_t>(flow.local_port())};
    claim.flows.push_back(grant);
    claim.flow_ids.push_back(flow.flow_id());
    claim.credit.push_back(flow.credit());
    s.lanes_.push_back({.grant = grant,
                        .flow_id = flow.flow_id(),
                        .credit = flow.credit(),
                        .opened = true,
                        .answered = true});
  }
  s.agreement_.lanes = static_cast<uint32_t>(s.lanes_.size());
  s.slot_ = record.board_session();
  s.claim_pending_ = true;
  context->board->claim(&s, std::move(claim));
  return session;
}

void Session::on_claimed(bool adopted) {
  claim_pending_ = false;
  claimed_ = adopted;
  if (!adopted) {
    lanes_.clear();
    slot_.reset();
  }
  changed_.notify();
}

}  // namespace sluice::control
