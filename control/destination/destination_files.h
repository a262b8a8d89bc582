// The files of a receiving end: agreed upon, created or found again, open at the dataplane in their turn.
//
// Pure: it asks for what it needs (effects.h) and is told how that ended. One file after the other is
// prepared; `prepared()` tells when flows may be opened. The dataplane takes object numbers modulo
// open_objects_max, so object n is opened when n - open_objects_max is closed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/parts/words.h"
#include "control/words/effects.h"
#include "control/words/events.h"
#include "control/words/pending.h"
#include "control/words/phase.h"
#include "control/words/terms.h"

namespace sluice::transfer {

// What is being waited for, of the file that is being prepared.
enum class FilesPhase : uint8_t {
  kIdle,
  kOffer,       // parts of it have come
  kRecovering,  // after a restart: what is there?
  kCreating,
  kFetching,
  kReopening,
  kRecreating,
  kNoting,  // that one of them begins anew
  kOpening,
  kReady,
};
bool allowed(FilesPhase from, FilesPhase to);

// An offer while data moves: what is being waited for.
enum class GrowthPhase : uint8_t {
  kNone,
  kCreating,  // its files
  kNoting,    // the journal is told
  kOpening,   // those whose turn has come, at the dataplane
};
bool allowed(GrowthPhase from, GrowthPhase to);

class DestinationFiles {
 public:
  // What an operator of this node wants, and where: it overrides what the peer says.
  struct Wish {
    const std::vector<std::string>& paths;  // at the peer
    const selection::Selection& selection;
    std::string destination;
    bool into_directory = false;
    bool overwrite = false;
    bool verify = false;
    bool mkdir = false;
    bool replicas = false;  // several peers offer the same, each with times of its own
    digests::Mask digests = 0;
    std::shared_ptr<const digests::Expected> expected = {};
  };
  // The wish of whoever asked for it at this node; nothing: a peer did.
  static std::optional<Wish> wish_of(const Request* request);

  // `extent_bytes`: as the session was cut. `files`: from the journal, or none yet. `joins`: digests of files
  // may be joined of sums of their extents, in a session with this kind of CRC.
  DestinationFiles(const Settings& settings, bool discard, uint32_t extent_bytes,
                   const std::vector<catalog::File>& files, std::optional<wire::CrcKind> joins = {});

  // By the grant of a third node: the offers of the peer go no further.
  void bind(const Granted& granted) { bounds_ = granted; }

  // A part of the offer. True once it was the last one, and the whole of it is right: then prepare(). The
  // first time an error means that nothing may be sent; later the offer must be the same as before.
  Result<bool> take_offer(const TransferOffer& part, const Wish* wish);
  // ---- a list that is growing ----
  // While data moves, in the same way: then grow(). What comes meanwhile has to wait.
  Result<bool> take_more(const TransferOffer& part, const Wish* wish);
  void drop_parts() { offering_ = false; }  // the stream with the rest of them is gone
  // Creates what is new of the offer. False: all of it is known.
  bool grow(Effects& out);
  void growth_noting() { growth_.change(GrowthPhase::kNoting); }
  void open_grown(ObjectId first, Effects& out);  // those whose turn has come
  bool grown() const;                             // they are open
  void growth_answered() { growth_.change(GrowthPhase::kNone); }
  GrowthPhase growth() const { return growth_; }
  uint32_t first_offered() const;  // file of the last offer
  // Creates the files, or reopens those of which there is no descriptor; then opens the first objects.
  void prepare(Effects& out);
  // As prepare(), for flows of an earlier life of this control: descriptors come from the dataplane.
  void adopt(Effects& out);
  void recover(Effects& out);  // once, after a restart, before anything else
  // The attempt ends: what is under way ends, and nothing new is begun.
  void halt() { halted_ = true; }
  // It has ended: nothing is under way, or open at the dataplane.
  void attempt_over();

  // What was asked for has ended. An error ends the attempt.
  Status on(const FilesCreated& event, Effects& out);
  Status on(const FilesRecovered& event, Effects& out);
  Status on(const ObjectFetched& event, Effects& out);
  Status on(const FileReopened& event, Effects& out);
  // `rows`: what is known of it already.
  Status on(const FileRecreated& event, std::vector<recovery::Block> rows, Effects& out);
  Status on(const JournalWritten& event, Effects& out);  // Entry::kAnew
  Status on(const ObjectOpened& event, Effects& out);
  void on(const ObjectClosed& event, Effects& out);

  // The object is done: its number may be used again before the source hears of it.
  void done(ObjectId object, Effects& out);
  void mark_done(ObjectId object);  // found so after a restart
  void mark_failed(ObjectId object);
  void failed(ObjectId object, Effects& out);  // its unfinished file is removed already
  // Closes what an earlier life of this control had open and has ended; workers were told to hold none of it.
  void close_ended(Effects& out);
  Batch rows_anew(ObjectId object) const;  // for the journal: no extent of it counts
  // These ranges count as zeros, and one of several sources has bytes there.
  std::vector<parts::ObjectRange> take_no_holes() { return std::exchange(no_holes_, {}); }
  // Its descriptor is gone: it has its name.
  void let_go(ObjectId object) { holdings_[object].has_file = false; }
  void released();  // every descriptor

  bool agreed() const { return catalog_.object_count() != 0; }
  bool preparing() const { return phase_ > FilesPhase::kOffer; }  // or prepared
  bool prepared() const { return phase_ == FilesPhase::kReady; }
  bool recovered() const { return phase_ != FilesPhase::kRecovering; }
  // A descriptor of its file is here, or it needs none.
  bool has_file(ObjectId object) const { return discard_ || holdings_[object].has_file; }
  bool is_open(ObjectId object) const { return holdings_[object].open; }
  bool discards() const { return discard_; }
  // The sums that workers compute of its extents. All digests that would want a pass over the file are joined
  // of them; 0: the file is read for its digests, or has none.
  sums::Mask sums_of(ObjectId object) const;
  // Workers are to give the object up: if it is not open, it stays so. False: it is being opened, and they
  // cannot tell yet.
  bool open_no_more(ObjectId object);
  bool halted() const { return halted_; }
  uint32_t pending() const { return pending_.count(); }
  FilesPhase phase() const { return phase_; }
  const catalog::Catalog& catalog() const { return catalog_; }
  catalog::Catalog& catalog() { return catalog_; }

 private:
  struct Holding {
    bool has_file = false;  // there is a descriptor of its file
    bool fetched = false;   // adopting: the dataplane was asked for it
    bool open = false;      // at the dataplane
    bool opening = false;   // OpenObject was asked for
    bool whole = false;     // it needs no bytes any more: if it is not open, it stays so
    bool done = false;

    bool to_open() const { return !done && !whole && !open; }
  };

  Result<bool> add_part(const TransferOffer& part, const Wish* wish);
  void take_holes(const OfferedFile& file, bool replicas);
  std::vector<catalog::File> new_files() const;
  void create(std::vector<catalog::File> files, Effects& out);
  void end_list();
  Status check(const TransferOffer& offer) const;
  Status check_place(const TransferOffer& offer) const;
  Status check_bounds(const TransferOffer& offer, uint64_t bytes_total) const;
  Status check_asked_for(const Wish& wish) const;
  Status check_same(bool replicas) const;
  Status check_file(const OfferedFile& file, bool is_last) const;
  uint32_t window() const { return catalog_.open_at_most(settings_.open_objects_max); }
  void created(const std::vector<catalog::File>& files, Effects& out);
  bool is_to_be_closed(ObjectId object) const;
  void close(ObjectId object, Effects& out);
  void open_in_place_of(ObjectId object, Effects& out);  // that is closed: the one whose turn has come
  void walk(Effects& out);
  bool turn(ObjectId object) const;
  void open(ObjectId object, Effects& out);

  const Settings& settings_;
  bool discard_ = false;
  std::optional<Granted> bounds_;
  const uint32_t extent_bytes_;
  std::optional<wire::CrcKind> joins_;
  Phase<FilesPhase> phase_{FilesPhase::kIdle};
  TransferOffer offer_;    // the last one, as far as it has come
  bool offering_ = false;  // parts of it are still to come
  Phase<GrowthPhase> growth_{GrowthPhase::kNone};
  catalog::Catalog catalog_;
  Indexed<ObjectId, Holding> holdings_;
  std::vector<parts::ObjectRange> no_holes_;
  ObjectId at_;  // the file that is being prepared
  bool adopting_ = false;
  bool halted_ = false;
  Pending pending_;
};

}  // namespace sluice::transfer
