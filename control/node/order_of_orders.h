// One order, as this node has it. Of orders.cc and orders_call.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "control/async/notify.h"
#include "control/async/pool.h"
#include "control/node/order_view.h"
#include "control/node/orders.h"

namespace sluice::node {

struct Orders::Order {
  Order(asio::io_context& io, async::Pool& pool) : journal(pool.serial()), news(io) {}

  transfer::Record record;  // the first leg is the source
  transfer::OrderState said;
  std::string waiting_for;       // of this node, while it does not hear the source
  std::optional<Error> trouble;  // of the last call
  struct Wish {
    transfer::OrderWish wish;
    bool said = false;   // in this call
    uint32_t heard = 0;  // states that came since then
  };
  std::deque<Wish> wishes;      // until the source has heard them for sure
  bool cancelled = false;       // by an operator, who was told so
  bool final_word = false;      // the last trouble is what the source has said
  int64_t signed_unix_ns = 0;   // the grant that the source has
  async::Pool::Serial journal;  // what is written last stands there last
  async::Notify news;

  const std::string& source() const { return record.legs.front().peer; }
  transfer::View view() const {
    transfer::View view = view_of_order(record, said);
    if (waiting_for.empty() || transfer::has_ended(record.state)) return view;
    view.waiting_for = waiting_for;
    if (trouble) view.waiting_for += " (" + trouble->message + ")";
    view.state = transfer::ViewState::kWaiting;
    view.rate_bps.reset();
    return view;
  }
};

}  // namespace sluice::node
