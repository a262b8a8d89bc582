// The receiving end: its files, its dealings with the board, the peer and the journal, and the final names.
// What is missing, due or complete is decided by recovery::Receiver.
//
// On the io_context thread, inside a Session; what blocks (sync, commit) runs on the pool. A file gets
// its name only when every extent is written, its digest equals the source's, and it is durable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/recovery/loss_detector.h"
#include "control/recovery/receiver.h"
#include "control/session/data_end.h"
#include "control/session/session.h"

namespace sluice::control {

class Destination final : public DataEnd {
 public:
  explicit Destination(Session& session) : session_(session) {}
  // Unfinished files that were not released stay: the daemon goes, the session does not.
  ~Destination() override {
    for (const File& file : files_) {
      if (file.file) file.file->keep();
    }
  }
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  // From the journal; the files are found again at the next attempt, and locked now if nobody has them.
  static Result<std::unique_ptr<DataEnd>> restore(Session& session, std::vector<SavedFile> files);

  // First: creates every file; an error means that nothing may be sent. Later: the offer must be the same,
  // and files are opened again. Opens the first objects.
  asio::awaitable<Status> prepare(const peer::TransferOffer& offer);
  peer::PeerMessage ready() const;
  void start_attempt();
  void send_states();  // what the source need not send

  asio::awaitable<Status> run() override;
  void on_message(const peer::PeerMessage& message) override;
  void on_event(const board::Event& event, uint32_t lane) override;
  void on_tick(uint64_t now_ns) override;
  void on_new_stream() override;
  asio::awaitable<Status> adopt() override;
  bool complete() const override { return receiver_ && receiver_->all_done(); }
  std::vector<journal::FileRecord> records() const override;
  uint64_t bytes_total() const override { return bytes_total_; }
  uint64_t bytes_done(const FlowFigures& figures) const override;
  uint64_t progress(const FlowFigures& figures) const override;
  std::string waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                          uint64_t now_ns) const override;
  void describe(api::Session* session) const override;
  void settle() override;
  asio::awaitable<void> release(bool keep) override;

 private:
  struct File {
    journal::FileRecord record;
    std::shared_ptr<exports::DestinationFile> file;  // nothing: discarded, done, or not open
    bool open = false;                               // at the dataplane
  };

  Status check_offer(const peer::TransferOffer& offer) const;
  Status check_same(const peer::TransferOffer& offer) const;
  asio::awaitable<Status> create(const peer::TransferOffer& offer);
  asio::awaitable<Status> reopen(bool fetch);
  asio::awaitable<Status> reopen_file(uint32_t index, UniqueFd fd);
  asio::awaitable<Status> begin_anew(uint32_t index);
  void make_receiver();
  asio::awaitable<Status> open_object(uint32_t index);
  asio::awaitable<Status> open_next(uint32_t index);
  bool discards() const { return session_.agreement().discard; }

  void take();  // what the receiver wants, done
  void extent_failed(const board::Event& event);
  void send_need(const recovery::Need& need);
  void send_done(uint32_t index);
  asio::awaitable<void> sync(uint32_t index);
  asio::awaitable<Status> make_durable(uint32_t index);
  asio::awaitable<void> finish(uint32_t index);
  asio::awaitable<Status> make_final(uint32_t index);
  asio::awaitable<Status> suspect(uint32_t index);
  asio::awaitable<Status> read_back(uint32_t index);
  journal::FileRecord record_of(uint32_t index, journal::FileRecord::State state) const;

  Session& session_;
  std::vector<File> files_;
  std::unique_ptr<recovery::Receiver> receiver_;
  std::vector<recovery::LossDetector> detectors_;  // per lane
  uint64_t bytes_total_ = 0;
  uint64_t steps_ = 0;
  uint32_t blocking_ = 0;  // syncs and commits under way
  bool peer_ended_ = false;
};

}  // namespace sluice::control
