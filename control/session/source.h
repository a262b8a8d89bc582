// The sending end: its files, its dealings with the board and the peer, and the rate. What to send is decided
// by recovery::Sender.
//
// On the io_context thread, inside a Session. Objects are opened in order; they are numbered as in the offer,
// and number n may be open only when n - kOpenObjectsMax is done at both ends (the dataplane takes numbers
// modulo that).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "control/rate/fixed_rate.h"
#include "control/recovery/sender.h"
#include "control/session/data_end.h"
#include "control/session/ranges.h"
#include "control/session/session.h"
#include "control/session/source_item.h"

namespace sluice::control {

class Source final : public DataEnd {
 public:
  Source(Session& session, std::vector<SourceItem> items);
  // From the journal; `reopen` finds the files again.
  static Result<std::unique_ptr<DataEnd>> restore(Session& session, std::vector<SavedFile> files);

  // Opens what is not open. kIntegrity when a file is not the one that the session began with.
  asio::awaitable<Status> reopen();
  peer::PeerMessage offer(const std::string& destination, bool overwrite) const;
  Status take_ready(const peer::TransferReady& ready);
  void start_attempt();  // new flows, or none

  asio::awaitable<Status> run() override;
  void on_message(const peer::PeerMessage& message) override;
  void on_event(const board::Event& event, uint32_t lane) override;
  void on_tick(uint64_t now_ns) override;
  void on_new_stream() override {}  // the peer speaks first: its ObjectStates
  asio::awaitable<Status> adopt() override;
  bool complete() const override { return sender_->all_done(); }
  std::vector<journal::FileRecord> records() const override;
  uint64_t bytes_total() const override { return bytes_total_; }
  uint64_t bytes_done(const FlowFigures& figures) const override;
  uint64_t progress(const FlowFigures& figures) const override;
  std::string waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                          uint64_t now_ns) const override;
  void describe(api::Session* session) const override;
  void settle() override {}  // keep_journal has written the last
  asio::awaitable<void> release(bool keep) override;

 private:
  Indexed<ObjectId, recovery::Layout> layouts() const;
  recovery::Sender::Options options() const;
  asio::awaitable<void> open_objects();
  asio::awaitable<Status> open_object(uint32_t index);
  bool is_changed(uint32_t index);  // fails the session then
  void take();                      // what the sender wants, done
  void tell_sent(const recovery::Sender::SentRange& sent);
  void tell_digest(uint32_t index);
  void object_state(const peer::ObjectState& state);
  bool fits(const RangeField& ranges);  // fails the session otherwise
  void extent_failed(const board::Event& event);
  asio::awaitable<void> keep_journal();
  asio::awaitable<Status> write_changed();
  asio::awaitable<void> reread_unknown();
  void control_rate(uint64_t now_ns);

  Session& session_;
  std::vector<SourceItem> items_;
  std::vector<std::string> destinations_;
  std::vector<bool> opened_;  // at the dataplane, in this attempt
  std::unique_ptr<recovery::Sender> sender_;
  std::optional<rate::FixedRate> rate_;
  uint64_t bytes_total_ = 0;
  uint64_t held_at_start_ = 0;  // by the peer, before this attempt
  uint32_t adopt_answers_ = 0;  // lanes that have still to answer
  uint32_t adopt_tag_ = 0;
  bool adopted_ = false;  // this attempt goes on with a former control's flows
  bool rereading_ = false;
  bool peer_ended_ = false;  // SessionDone received
};

}  // namespace sluice::control
