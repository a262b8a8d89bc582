// SPDX-License-Identifier: Apache-2.0
#include "control/peer/order_codec.h"

#include <algorithm>
#include <cmath>

#include "control/proto/fields.h"
#include "control/proto/grant_fields.h"
#include "control/proto/option_fields.h"

namespace sluice::peer {
namespace {

constexpr auto kWishKindMax = static_cast<uint32_t>(transfer::OrderWishKind::kRenew);

void put(const transfer::OrderedFile& from, OrderedFile* to) {
  to->set_source(from.source);
  to->set_destination(from.destination);
  to->set_size(from.size_bytes);
  to->set_bytes_done(from.bytes_done);
  to->set_done(from.done);
  to->set_digest_source(from.digest_source);
  to->set_digest_destination(from.digest_destination);
}

transfer::OrderedFile file_of(const OrderedFile& from) {
  return {.source = from.source(),
          .destination = from.destination(),
          .size_bytes = from.size(),
          .bytes_done = from.bytes_done(),
          .done = from.done(),
          .digest_source = from.digest_source(),
          .digest_destination = from.digest_destination()};
}

}  // namespace

void put(const transfer::Order& m, PeerMessage* wire) {
  Order* const to = wire->mutable_order();
  put_grant(m.grant, to->mutable_grant());
  for (const std::string& path : m.source_paths) to->add_source_paths(path);
  selection::put_selection(m.selection, to);
  to->set_keep(m.selection.keep.bits());
  to->set_destination(m.destination);
  api::put_wish(m.options, to->mutable_options());
}

void put(const transfer::OrderState& m, PeerMessage* wire) {
  OrderState* const to = wire->mutable_order_state();
  to->set_state(m.state);
  to->set_bytes_total(m.bytes_total);
  to->set_bytes_done(m.bytes_done);
  to->set_names_total(m.names.total);
  to->set_names_done(m.names.done);
  to->set_names_failed(m.names.failed);
  to->set_names_left_out(m.names.left_out);
  to->set_listing(m.names.listing);
  set_failures(m.names.failures, to);
  to->set_rate_bps(m.rate_bps);
  to->set_rate_limit_bps(m.rate_limit_bps);
  to->set_waiting_for(m.waiting_for);
  to->set_error_code(m.error_code);
  to->set_error(m.error);
  to->set_bytes_sent(m.figures.bytes_sent);
  to->set_chunks(m.figures.chunks);
  to->set_retransmits(m.figures.retransmits);
  to->set_lost(m.figures.lost);
  to->set_rtt_ns(m.figures.rtt_ns);
  to->set_elapsed_ns(m.figures.elapsed_ns);
  to->set_data_elapsed_ns(m.figures.data_elapsed_ns);
  to->set_attempts(m.figures.attempts);
  to->set_lanes(m.lanes);
  to->set_chunk_bytes(m.chunk_bytes);
  to->set_crc(m.crc);
  to->set_protection(m.protection);
  to->set_queue_place(m.queue_place);
  to->set_queue_length(m.queue_length);
  to->set_cause(static_cast<uint32_t>(m.verdict.cause));
  to->set_cause_share(static_cast<uint32_t>(std::lround(m.verdict.share * 1000)));
  for (const std::string& line : m.verdict.evidence) to->add_evidence(line);
  for (const transfer::OrderedFile& file : m.files) put(file, to->add_files());
}

void put(const transfer::OrderWish& m, PeerMessage* wire) {
  OrderWish* const to = wire->mutable_order_wish();
  to->set_kind(static_cast<OrderWish::Kind>(m.kind));
  to->set_rate_bps(m.rate_bps);
  if (m.kind == transfer::OrderWishKind::kRenew) put_grant(m.grant, to->mutable_grant());
}

transfer::Order take(const Order& m) {
  transfer::Order order{.grant = grant_of(m.grant()),
                        .source_paths = {m.source_paths().begin(), m.source_paths().end()},
                        .selection = selection::selection_of(m),
                        .destination = m.destination()};
  order.selection.keep = selection::Keep::of(m.keep());
  const Result<options::Wish> wish = api::wish_of(m.options());
  if (wish) order.options = *wish;
  if (!wish) order.problem = wish.error();
  return order;
}

transfer::OrderState take(const OrderState& m) {
  transfer::OrderState to{.state = m.state(),
                          .bytes_total = m.bytes_total(),
                          .bytes_done = m.bytes_done(),
                          .names = {.total = m.names_total(),
                                    .done = m.names_done(),
                                    .failed = m.names_failed(),
                                    .left_out = m.names_left_out(),
                                    .listing = m.listing(),
                                    .failures = failures_of(m)},
                          .rate_bps = m.rate_bps(),
                          .rate_limit_bps = m.rate_limit_bps(),
                          .waiting_for = m.waiting_for(),
                          .error_code = m.error_code(),
                          .error = m.error(),
                          .figures = {.bytes_sent = m.bytes_sent(),
                                      .chunks = m.chunks(),
                                      .retransmits = m.retransmits(),
                                      .lost = m.lost(),
                                      .rtt_ns = m.rtt_ns(),
                                      .elapsed_ns = m.elapsed_ns(),
                                      .data_elapsed_ns = m.data_elapsed_ns(),
                                      .attempts = m.attempts()},
                          .lanes = m.lanes(),
                          .chunk_bytes = m.chunk_bytes(),
                          .crc = m.crc(),
                          .protection = m.protection(),
                          .queue_place = m.queue_place(),
                          .queue_length = m.queue_length(),
                          .verdict = {.cause = verdict::cause_of(m.cause()),
                                      .share = std::min(m.cause_share(), 1000U) / 1000.0,
                                      .evidence = {m.evidence().begin(), m.evidence().end()}}};
  for (const OrderedFile& file : m.files()) to.files.push_back(file_of(file));
  return to;
}

// A wish that is not known here is none.
transfer::OrderWish take(const OrderWish& m) {
  const auto number = static_cast<uint32_t>(m.kind());
  return {.kind = number <= kWishKindMax ? static_cast<transfer::OrderWishKind>(number)
                                         : transfer::OrderWishKind::kNothing,
          .rate_bps = m.rate_bps(),
          .grant = grant_of(m.grant())};
}

}  // namespace sluice::peer
