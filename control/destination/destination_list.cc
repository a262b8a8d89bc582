// A receiving end whose source still reads the list of its files: what is offered while data moves is
// created, noted and answered for before anything of it moves.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_end.h"
#include "control/words/range_messages.h"

namespace sluice::transfer {
namespace {

// An offer has at most some twenty parts, and there are at most two: one is made again on a new stream.
constexpr size_t kPartsWaitingMax = 64;

}  // namespace

Status DestinationEnd::hear_offer(LegId leg, const TransferOffer& part) {
  if (!catalog().grew())
    return Error{ErrorCode::kIncompatible,
                 "the peer makes an offer while data moves, of a list that was whole"};
  if (offers_.size() == kPartsWaitingMax)
    return Error{ErrorCode::kIncompatible, "the peer makes offers before those before them are answered"};
  offers_on_ = leg;
  offers_.push_back(part);
  return {};
}

Status DestinationEnd::keep_list(const Request* request, Effects& out) {
  answer_offer(out);
  if (!offers_wait()) return {};
  const std::optional<DestinationFiles::Wish> wish = DestinationFiles::wish_of(request);
  while (offers_wait()) {
    const TransferOffer part = std::move(offers_.front());
    offers_.pop_front();
    const Result<bool> whole = files_.take_more(part, wish ? &*wish : nullptr);
    if (!whole) return whole.error();
    if (!*whole) continue;
    if (!files_.grow(out)) {
      say_ready(out);
    } else if (files_.growth() != GrowthPhase::kCreating || files_.discards()) {
      note_growth(receive_new(), out);
    }
  }
  return {};
}

// Files that were created are to be received; those that could not be count as done.
ObjectId DestinationEnd::receive_new() {
  ObjectId first;
  if (!receiver_) {
    make_receiver();
  } else {
    first = ObjectId(static_cast<uint32_t>(receiver_->objects()));
  }
  for (uint32_t i = first.value(); i < catalog().object_count(); ++i) {
    const ObjectId object(i);
    if (i >= receiver_->objects()) {
      receiver_->add({.size_bytes = catalog().object(object).size_bytes,
                      .extent_bytes = agreement_.extent_bytes,
                      .crc_kind = agreement_.crc_kind});
      receiver_->sum(object, files_.sums_of(object));
      commits_.push_back({});
    }
    put_holes(object);
    const catalog::File& file = catalog().files_of(object).front();
    if (file.failed()) receiver_->failed(object);
    if (file.state == catalog::FileState::kDone && !receiver_->done(object)) {
      receiver_->set_done(object, file.digest);
      commits_[object].found_named();
    }
  }
  return first;
}

// The record of the last file says that the list has ended.
void DestinationEnd::note_growth(ObjectId first, Effects& out) {
  if (files_.halted()) return;  // the next attempt notes all
  Batch batch;
  const uint32_t count = static_cast<uint32_t>(catalog().object_count());
  for (uint32_t i = std::min(first.value(), count - 1); i < count; ++i) {
    const catalog::FileId file = catalog().object(ObjectId(i)).first_file;
    batch.files.push_back({.file = file, .record = catalog().file(file)});
    if (i < first.value()) continue;
    std::vector<recovery::Block> blocks = receiver_->take_changed(ObjectId(i));
    if (!blocks.empty()) batch.blocks.push_back({.object = ObjectId(i), .blocks = std::move(blocks)});
  }
  files_.growth_noting();
  pending_.ask(
      WriteJournal{.entry = Entry::kGrown, .batch = std::move(batch), .durability = Durability::kPower}, out);
}

Status DestinationEnd::growth_noted(const Status& written, Effects& out) {
  if (!written || files_.halted()) return written;
  files_.open_grown(ObjectId(files_.first_offered()), out);
  return {};
}

void DestinationEnd::answer_offer(Effects& out) {
  if (!files_.grown() || files_.halted()) return;
  ++steps_;
  files_.growth_answered();
  say_ready(out);
}

void DestinationEnd::say_ready(Effects& out) const {
  TransferReady ready{.objects = static_cast<uint32_t>(catalog().object_count()),
                      .growing = catalog().growing(),
                      .keep = catalog().keep().bits()};
  for (uint32_t i = files_.first_offered(); i < catalog().file_count(); ++i)
    ready.final_paths.push_back(catalog().file(catalog::FileId(i)).shown);
  say_on(offers_on_, std::move(ready), out);
  for (ObjectId object(files_.first_offered()); catalog().contains(object); ++object) {
    if (catalog().files_of(object).front().failed()) {
      say_on(offers_on_, failed_word(object), out);
      continue;
    }
    in_parts(receiver_->held(object), [&](std::vector<recovery::Range> ranges) {
      say_on(offers_on_, ObjectState{.object = object, .held = std::move(ranges)}, out);
    });
  }
}

}  // namespace sluice::transfer
