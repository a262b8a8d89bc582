// SPDX-License-Identifier: Apache-2.0
#include "control/node/order_view.h"

#include <algorithm>
#include <array>

namespace sluice::node {
namespace {

using transfer::ViewState;

struct Numbered {
  ViewState state;
  uint32_t number;
};
constexpr auto kStates = std::to_array<Numbered>({{ViewState::kQueued, 8},
                                                  {ViewState::kConnecting, 1},
                                                  {ViewState::kNegotiating, 2},
                                                  {ViewState::kTransferring, 3},
                                                  {ViewState::kFinishing, 4},
                                                  {ViewState::kWaiting, 9},
                                                  {ViewState::kPaused, 10},
                                                  {ViewState::kSucceeded, 5},
                                                  {ViewState::kFailed, 6},
                                                  {ViewState::kCancelled, 7}});

uint32_t number_of(ViewState state) {
  const auto found = std::ranges::find(kStates, state, &Numbered::state);
  return found == kStates.end() ? 0 : found->number;
}

ViewState ended_as(transfer::RecordState state) {
  return state == transfer::RecordState::kSucceeded   ? ViewState::kSucceeded
         : state == transfer::RecordState::kCancelled ? ViewState::kCancelled
                                                      : ViewState::kFailed;
}

}  // namespace

bool order_waits(ErrorCode code) {
  return code == ErrorCode::kPeerUnreachable || code == ErrorCode::kDaemonNotRunning ||
         code == ErrorCode::kResources || code == ErrorCode::kStalled;
}

std::optional<ViewState> view_state_of(uint32_t number) {
  const auto found = std::ranges::find(kStates, number, &Numbered::number);
  if (found == kStates.end()) return std::nullopt;
  return found->state;
}

transfer::OrderState state_of(const transfer::View& view) {
  const transfer::Summary& summary = view.summary;
  transfer::OrderState state{.state = number_of(view.state),
                             .bytes_total = view.bytes_total,
                             .bytes_done = summary.bytes_done,
                             .names = {.total = view.names.total,
                                       .done = view.names.done,
                                       .failed = view.names.failed,
                                       .left_out = view.names.left_out,
                                       .listing = view.names.listing,
                                       .failures = view.names.failures},
                             .rate_bps = view.rate_bps ? static_cast<uint64_t>(*view.rate_bps) : 0,
                             .rate_limit_bps = view.rate.limit_bps,
                             .waiting_for = view.waiting_for,
                             .figures = {.bytes_sent = summary.bytes_sent,
                                         .chunks = summary.chunks,
                                         .retransmits = summary.retransmits,
                                         .lost = summary.lost,
                                         .rtt_ns = summary.rtt_ns,
                                         .elapsed_ns = summary.elapsed_ns,
                                         .data_elapsed_ns = summary.data_elapsed_ns,
                                         .attempts = static_cast<uint32_t>(summary.attempts)},
                             .lanes = view.lanes,
                             .chunk_bytes = view.chunk_bytes,
                             .crc = view.crc,
                             .protection = view.protection,
                             .queue_place = view.queue.place,
                             .queue_length = view.queue.length,
                             .verdict = view.bottleneck.now};
  if (state.names.failures.size() > catalog::kFailuresKept)
    state.names.failures.resize(catalog::kFailuresKept);
  if (view.error) {
    state.error_code = static_cast<uint32_t>(view.error->code);
    state.error = view.error->message;
  }
  for (const transfer::FileView& file : view.files) {
    if (state.files.size() == transfer::kOrderedFilesTold) break;
    state.files.push_back({.source = file.source,
                           .destination = file.destination,
                           .size_bytes = file.size_bytes,
                           .bytes_done = file.bytes_done,
                           .done = file.done,
                           .digest_source = file.digest_source,
                           .digest_destination = file.digest_destination});
  }
  return state;
}

transfer::View view_of_order(const transfer::Record& record, const transfer::OrderState& said) {
  transfer::View view;
  view.id = record.id;
  view.asker.of_this_node = true;
  view.asker.source_node = record.legs.front().peer;
  view.role = transfer::Role::kSource;
  view.peer = record.ordered->destination;
  view.started_unix_ns = record.started_unix_ns;
  view.state = transfer::has_ended(record.state) ? ended_as(record.state)
                                                 : view_state_of(said.state).value_or(ViewState::kConnecting);
  view.error = record.error;
  view.bytes_total = said.bytes_total;
  view.names.total = said.names.total;
  view.names.done = said.names.done;
  view.names.failed = said.names.failed;
  view.names.left_out = said.names.left_out;
  view.names.listing = said.names.listing;
  view.names.failures = said.names.failures;
  if (said.rate_bps != 0) view.rate_bps = static_cast<double>(said.rate_bps);
  view.rate.limit_bps = said.rate_limit_bps;
  view.waiting_for = said.waiting_for;
  view.queue.place = said.queue_place;
  view.queue.length = said.queue_length;
  view.summary.bytes_done = said.bytes_done;
  view.summary.bytes_sent = said.figures.bytes_sent;
  view.summary.chunks = said.figures.chunks;
  view.summary.retransmits = said.figures.retransmits;
  view.summary.lost = said.figures.lost;
  view.summary.rtt_ns = said.figures.rtt_ns;
  view.summary.elapsed_ns = said.figures.elapsed_ns;
  view.summary.data_elapsed_ns = said.figures.data_elapsed_ns;
  view.summary.attempts = said.figures.attempts;
  view.lanes = said.lanes;
  view.chunk_bytes = said.chunk_bytes;
  view.crc = said.crc;
  view.protection = said.protection;
  view.bottleneck.now = said.verdict;
  if (said.verdict.cause != verdict::Cause::kNone) view.bottleneck.causes = {said.verdict};
  uint32_t object = 0;
  for (const transfer::OrderedFile& file : said.files)
    view.files.push_back({.object = object++,
                          .source = file.source,
                          .destination = file.destination,
                          .size_bytes = file.size_bytes,
                          .bytes_done = file.bytes_done,
                          .done = file.done,
                          .digest_source = file.digest_source,
                          .digest_destination = file.digest_destination});
  if (!view.files.empty() || !record.request) return view;
  for (const std::string& path : record.request->source_paths) {  // as it was asked for
    transfer::FileView file{.object = object++};
    file.source = path;
    file.destination = record.request->destination;
    view.files.push_back(std::move(file));
  }
  return view;
}

}  // namespace sluice::node
