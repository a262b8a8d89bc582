// SPDX-License-Identifier: Apache-2.0
#include "control/session/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::control {
namespace {

constexpr auto kLastWordTimeout = std::chrono::seconds(5);

Error changed(const std::string& shown) {
  return {ErrorCode::kIntegrity,
          shown + ": changed since the transfer began: nothing of it is stored, send it again"};
}

// Opens what is not open yet; the file must be the one that is known.
Status open_again(const exports::Exports& exports, std::vector<SourceItem>* items) {
  for (SourceItem& item : *items) {
    if (item.path.empty() || item.file) continue;
    Result<exports::SourceFile> file = exports.open_source(item.path);
    if (!file) return file.error();
    if (file->size != item.size || file->mtime_ns != item.mtime_ns || file->device != item.device ||
        file->inode != item.inode) {
      return changed(item.shown);
    }
    item.file = std::make_shared<exports::SourceFile>(std::move(*file));
  }
  return {};
}

}  // namespace

Source::Source(Session& session, std::vector<SourceItem> items)
    : session_(session), items_(std::move(items)), destinations_(items_.size()) {
  for (const SourceItem& item : items_) bytes_total_ += item.size;
  sender_ = std::make_unique<recovery::Sender>(layouts(), session.agreement().lanes, options());
}

Result<std::unique_ptr<DataEnd>> Source::restore(Session& session, std::vector<SavedFile> files) {
  std::vector<SourceItem> items;
  for (const SavedFile& file : files) {
    const journal::FileRecord& record = file.record;
    SourceItem item;
    item.shown = record.shown();
    item.name = record.name();
    item.path = record.path();
    item.size = record.size();
    item.mode = record.mode();
    item.mtime_ns = record.mtime_ns();
    item.device = record.device();
    item.inode = record.inode();
    items.push_back(std::move(item));
  }
  auto source = std::make_unique<Source>(session, std::move(items));
  for (uint32_t i = 0; i < files.size(); ++i) {
    source->destinations_[i] = files[i].record.peer_path();
    for (const recovery::Block& block : files[i].blocks) {
      const Status status = source->sender_->restore(ObjectId(i), block);
      if (!status) return Error{ErrorCode::kStorage, files[i].record.shown() + ": " + status.error().message};
    }
  }
  return std::unique_ptr<DataEnd>(std::move(source));
}

Indexed<ObjectId, recovery::Layout> Source::layouts() const {
  Indexed<ObjectId, recovery::Layout> layouts;
  for (const SourceItem& item : items_) {
    layouts.push_back({.size_bytes = item.size,
                       .extent_bytes = session_.agreement().extent_bytes,
                       .crc_kind = session_.agreement().crc_kind});
  }
  return layouts;
}

recovery::Sender::Options Source::options() const {
  const Agreement& agreement = session_.agreement();
  return {.partition_bytes = agreement.partition_bytes,
          .lane_rate_bps = agreement.rate_bps / std::max(1U, agreement.lanes)};
}

asio::awaitable<Status> Source::reopen() {
  auto work = [context = session_.context(), items = &items_] { return open_again(context->exports, items); };
  co_return co_await in_pool(session_.context(), std::move(work));
}

void Source::start_attempt() {
  const auto lanes = static_cast<uint32_t>(session_.lanes().size());
  opened_.assign(items_.size(), false);
  peer_ended_ = adopted_ = false;
  rate_.emplace(session_.agreement().rate_bps, monotonic_ns());
  sender_->start_attempt(lanes, options(), monotonic_ns());
  held_at_start_ = sender_->bytes_held();
}

peer::PeerMessage Source::offer(const std::string& destination, bool overwrite) const {
  peer::PeerMessage message;
  peer::TransferOffer* offer = message.mutable_transfer_offer();
  for (size_t i = 0; i < items_.size(); ++i) {
    const SourceItem& item = items_[i];
    peer::File* file = offer->add_files();
    file->set_object(static_cast<uint32_t>(i));
    file->set_path(item.name);
    file->set_size(item.size);
    file->set_mode(item.mode);
    file->set_mtime_ns(item.mtime_ns);
  }
  offer->set_destination(destination);
  offer->set_destination_is_directory(destination.ends_with('/') || items_.size() > 1);
  offer->set_overwrite(overwrite);
  return message;
}

Status Source::take_ready(const peer::TransferReady& ready) {
  const auto lanes = static_cast<int>(session_.lanes().size());
  if (ready.flow_ids_size() != lanes || ready.credit_extents_size() != lanes) {
    return Error{ErrorCode::kIncompatible, "the peer is ready with another number of flows than agreed"};
  }
  if (std::count(ready.flow_ids().begin(), ready.flow_ids().end(), 0U) != 0) {
    return Error{ErrorCode::kIncompatible, "the peer gave a flow no id"};
  }
  for (int i = 0; i < ready.final_paths_size() && i < static_cast<int>(items_.size()); ++i) {
    destinations_[static_cast<size_t>(i)] = ready.final_paths(i);
  }
  return {};
}

std::vector<journal::FileRecord> Source::records() const {
  std::vector<journal::FileRecord> records;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const SourceItem& item = items_[i];
    journal::FileRecord record;
    record.set_state(sender_->done(ObjectId(i)) ? journal::FileRecord::DONE : journal::FileRecord::OPEN);
    record.set_name(item.name);
    record.set_shown(item.shown);
    record.set_path(item.path);
    record.set_size(item.size);
    record.set_mode(item.mode);
    record.set_mtime_ns(item.mtime_ns);
    record.set_device(item.device);
    record.set_inode(item.inode);
    record.set_peer_path(destinations_[i]);
    if (sender_->digest_known(ObjectId(i))) record.set_digest(sender_->digest(ObjectId(i)));
    records.push_back(std::move(record));
  }
  return records;
}

asio::awaitable<Status> Source::run() {
  if (!session_.lanes().empty()) session_.spawn(open_objects());
  session_.spawn(keep_journal());
  take();
  while (!session_.failed() && !complete()) co_await session_.changed().wait();
  // Every file stands at the peer; its last word is only politeness.
  const auto deadline = std::chrono::steady_clock::now() + kLastWordTimeout;
  while (!session_.failed() && !peer_ended_ && session_.stream_open() &&
         std::chrono::steady_clock::now() < deadline) {
    co_await session_.changed().wait_for(kLastWordTimeout);
  }
  if (!session_.failed() && session_.stream_open()) {
    peer::PeerMessage message;
    message.mutable_session_done()->set_files(items_.size());
    message.mutable_session_done()->set_bytes(bytes_total_);
    session_.send(message);
  }
  co_return Status();
}

asio::awaitable<void> Source::open_objects() {
  constexpr uint32_t kOpenAhead = 16;  // objects opened before their turn
  for (uint32_t i = 0; i < items_.size(); ++i) {
    if (items_[i].size == 0 || sender_->done(ObjectId(i))) continue;
    const auto due = [&] {
      return i < sender_->cursor().value() + kOpenAhead &&
             (i < board::kOpenObjectsMax || sender_->done(ObjectId(i - board::kOpenObjectsMax)));
    };
    while (!session_.failed() && !due()) co_await session_.changed().wait();
    if (session_.failed()) co_return;
    if (!opened_[i]) {
      const Status status = co_await open_object(i);
      if (session_.failed()) co_return;
      if (!status) {
        session_.fail(status.error());
        co_return;
      }
    }
    opened_[i] = true;
    sender_->object_opened(ObjectId(i));
    take();
  }
}

asio::awaitable<Status> Source::open_object(uint32_t index) {
  BoardClient& board = *session_.context()->board;
  if (index >= board::kOpenObjectsMax) {
    const uint32_t before = index - board::kOpenObjectsMax;
    if (opened_[before]) co_await board.close_object(session_.slot(), before);
    opened_[before] = false;
    if (session_.board_lost()) co_return Status();
  }
  const SourceItem& item = items_[index];
  const uint32_t flags = !item.file ? board::kObjectGenerate : item.file->direct ? board::kObjectDirect : 0U;
  const int fd = item.file ? item.file->fd.get() : -1;
  // Generated objects have no descriptor by which a former control's could be told.
  const bool may_exist = adopted_ && !item.file;
  co_return co_await board.open_object(session_.slot(), index, flags, item.size,
                                       session_.agreement().extent_bytes, fd, may_exist);
}

bool Source::is_changed(uint32_t index) {
  const SourceItem& item = items_[index];
  if (!item.file) return false;
  const Status unchanged = exports::Exports::check_unchanged(*item.file);
  if (!unchanged) session_.fail(unchanged.error());
  return !unchanged;
}

asio::awaitable<void> Source::release(bool /*keep*/) {
  for (SourceItem& item : items_) item.file.reset();
  co_return;
}

uint64_t Source::bytes_done(const FlowFigures& figures) const {
  if (complete()) return bytes_total_;
  return std::min(bytes_total_, std::max(sender_->bytes_held(), held_at_start_ + figures.bytes_done));
}

uint64_t Source::progress(const FlowFigures& figures) const {
  return figures.bytes + figures.bytes_done + sender_->steps();
}

std::string Source::waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                                uint64_t now_ns) const {
  if (rereading_) return "source disk (reading again what the journal does not know)";
  const std::string wait = sender_wait(before, now, interval_ns, now_ns);
  if (!wait.empty()) return wait;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    if (!sender_->digest_known(ObjectId(i))) return "";
  }
  return "peer's disk (sync)";
}

void Source::describe(api::Session* session) const {
  const wire::CrcKind kind = session_.agreement().crc_kind;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    const SourceItem& item = items_[i];
    api::FileProgress* file = session->add_files();
    file->set_object(i);
    file->set_source(item.shown);
    file->set_destination(destinations_[i]);
    file->set_size(item.size);
    file->set_bytes_done(sender_->done(ObjectId(i)) ? item.size : sender_->bytes_held(ObjectId(i)));
    file->set_done(sender_->done(ObjectId(i)));
    if (sender_->digest_known(ObjectId(i)))
      file->set_digest_source(digest_hex(kind, sender_->digest(ObjectId(i))));
    if (sender_->done(ObjectId(i)))
      file->set_digest_destination(digest_hex(kind, *sender_->peer_digest(ObjectId(i))));
  }
}

}  // namespace sluice::control
