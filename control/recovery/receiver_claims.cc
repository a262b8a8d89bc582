// Identity is not content: what a journal says of a file that was out of this process's hands (it was down,
// or let go of the file) is a claim. Volumes go back to snapshots, files are replaced, disks forget. Each
// claim is read once more while the transfer goes on, and what is not as it says comes again from the source.
//
// Claims of an object are read from its start to its end. What arrives meanwhile is no claim; the block that
// it fills up is read with it, since of a full block only one digest is known.
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "control/recovery/receiver.h"

namespace sluice::recovery {

void Receiver::distrust(ObjectId id) {
  Object& object = objects_[id];
  if (object.done) return;
  drop_claims(object);
  object.claimed = object.ledger.map();
  object.claims_from = ExtentId(0);
  claimed_bytes_ += object.claimed.set_bytes();
}

std::optional<ExtentId> Receiver::next_claim(const Object& object) const {
  const ExtentMap& claimed = object.claimed;
  for (uint64_t at = object.claims_from.value(); at < claimed.extents(); at = (at / 64 + 1) * 64) {
    const uint64_t word = claimed.word(at / 64) >> (at % 64);
    if (word != 0) return ExtentId(at + static_cast<uint64_t>(std::countr_zero(word)));
  }
  return std::nullopt;
}

void Receiver::set_claims_from(Object& object, ExtentId from) {
  while (const std::optional<ExtentId> claim = next_claim(object)) {
    if (*claim >= from) return;
    claimed_bytes_ -= object.claimed.range_of(*claim).length;
    object.claims_from = claim->plus(1);
  }
}

void Receiver::drop_claims(Object& object) {
  set_claims_from(object, object.claimed.end_id());
  object.claimed = ExtentMap();
}

std::optional<Claim> Receiver::take_claim(ObjectId id) {
  Object& object = objects_[id];
  // A sync that is under way holds extents that might have to be forgotten.
  if (reading_ || adoption_ || object.done || object.finishing || object.sync_under_way) return std::nullopt;
  const std::optional<ExtentId> next = next_claim(object);
  if (!next) return std::nullopt;
  reading_ = Reading{.object = id, .piece = object.ledger.piece_at(*next)};
  return Claim{.object = id, .range = reading_->piece.range};
}

Judgement Receiver::judge_claim(std::optional<uint64_t> crc) {
  CHECK(reading_, "what is answered was asked for");
  const Reading reading = *std::exchange(reading_, std::nullopt);
  Object& object = objects_[reading.object];
  const bool good = crc == reading.piece.crc;
  // It is read again after the sync: only then can it be forgotten.
  if (!good && object.sync_under_way) return Judgement::kLater;
  ExtentLedger::Piece piece = reading.piece;
  if (!good) {
    // Its block may have filled up since: of that only one digest is known, so all of it goes.
    const BlockId block = ExtentLedger::block_of(object.written.extent_at(piece.range.offset));
    if (const auto digest = object.ledger.block_digest(block)) {
      piece = {.range = object.ledger.range_of(block), .crc = *digest};
    }
  }
  set_claims_from(object, object.claimed.extent_at(piece.range.end() - 1).plus(1));
  if (!good) forget_claim(reading.object, piece);
  finish_if_complete(reading.object);
  return good ? Judgement::kGood : Judgement::kForgotten;
}

void Receiver::forget_claim(ObjectId id, const ExtentLedger::Piece& piece) {
  Object& object = objects_[id];
  const uint64_t behind = object.layout.size_bytes - piece.range.end();
  object.digest ^= crc::shift(object.layout.crc_kind, piece.crc, behind);
  object.ledger.forget(piece.range);
  bytes_written_ -= piece.range.length;
  std::vector<ExtentId> extents;
  const ExtentId last = object.written.extent_at(piece.range.end() - 1);
  for (ExtentId extent = object.written.extent_at(piece.range.offset); extent <= last; ++extent) {
    object.written.clear(extent);
    extents.push_back(extent);
    // Durable, and only its row is missing in the journal: it must not come there any more.
    if (object.unsynced.erase(extent) == 0) continue;
    const uint64_t bytes = object.written.range_of(extent).length;
    object.unsynced_bytes -= bytes;
    unsynced_bytes_ -= bytes;
  }
  forget_and_need(id, std::move(extents));
}

}  // namespace sluice::recovery
