// The files of one transfer: opened, created, found again, synced, named, let go of, on the pool.
//
// On the loop's thread; what blocks runs elsewhere and answers into the transfer's queue. Whatever is under
// way holds this object, and the files it works upon.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "control/gather/packs.h"
#include "control/gather/sources.h"
#include "control/hash/several.h"
#include "control/runtime/events.h"
#include "control/runtime/list_reader.h"
#include "control/runtime/services.h"
#include "control/transfer/transfer.h"

namespace sluice::runtime {

// Of each of `ranges`, in their order; the first error ends it.
template <typename CrcOf>
Result<std::vector<uint64_t>> crcs_of(const std::vector<recovery::Range>& ranges, const CrcOf& crc_of) {
  std::vector<uint64_t> crcs;
  for (const recovery::Range& range : ranges) {
    const Result<uint64_t> crc = crc_of(range);
    if (!crc) return crc.error();
    crcs.push_back(*crc);
  }
  return crcs;
}

// By which an unfinished file of a destination is found again. `one_of_many`: of a session of several names.
exports::DestinationSpec spec_of(const catalog::File& file, bool one_of_many, wire::CrcKind crc_kind);

class TransferFiles : public std::enable_shared_from_this<TransferFiles> {
 public:
  // `transfer` is read only while an effect of it is performed.
  TransferFiles(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue,
                const transfer::Transfer& transfer, gather::OpenSources sources);

  // Of a session that a former control left, or whose files are known when it begins: it counts in its
  // exports (quota_checks.cc).
  void rejoin();
  const std::string& key();  // export_key() of its files

  // What the dataplane is given of an object; -1: there is no file. `owner` keeps the descriptor open.
  struct Descriptor {
    int fd = -1;
    bool direct = false;
    std::shared_ptr<const void> owner;
    uint64_t base_bytes = 0;  // where the object begins in the file
  };
  Descriptor descriptor(ObjectId object) const;
  // Calls `then` once there is a descriptor: a pack is filled, or made, before it is opened; a file that was
  // not kept open is opened again.
  void make_ready(ObjectId object, std::function<void(Status)> then);
  void closed(ObjectId object);  // at the dataplane: what a source had of it goes, if it was not to be kept
  // The dataplane still had the descriptor of a pack, or of an unfinished file, which ReopenFile takes.
  void fetched(ObjectId object, UniqueFd fd);

  // Of a source
  void perform(const transfer::OpenSources& effect);
  void perform(const transfer::ReadList& effect);
  void perform(const transfer::ReopenSources& effect);
  void perform(const transfer::CheckSource& effect);
  void perform(const transfer::ReadExtents& effect);
  // Of a destination
  void perform(const transfer::CreateFiles& effect);
  void perform(const transfer::RecoverFiles& effect);
  void perform(const transfer::ReopenFile& effect);
  void perform(const transfer::RecreateFile& effect);
  void perform(const transfer::SyncObject& effect);
  void perform(const transfer::FinishObject& effect);
  void perform(const transfer::ReadBackObject& effect);
  void perform(const transfer::NameObject& effect);
  void perform(const transfer::DropFile& effect);
  // Of both
  void perform(const transfer::ReleaseFiles& effect);

 private:
  using Destination = std::shared_ptr<exports::DestinationFile>;

  void post(transfer::Event event) const;
  bool is_destination() const { return transfer_.job().destination() != nullptr; }
  const catalog::File& file(ObjectId object) const;
  const std::shared_ptr<exports::SourceFile>& source(ObjectId object) const;  // nothing: it is closed
  Destination& destination(ObjectId object);
  void let_go(ObjectId object);  // its descriptors
  // Of files that are not kept open (files_kept_open).
  bool is_closed_source(ObjectId object) const;
  void open_source_again(ObjectId object, std::function<void(Status)> then);
  bool is_closed_destination(ObjectId object) const;
  void open_destination_again(ObjectId object, std::function<void(Status)> then);
  // Of packs, in pack_files.cc.
  void read_extents(const transfer::ReadExtents& effect);
  void check_pack(const transfer::CheckSource& effect);
  void read_back_pack(const transfer::ReadBackObject& effect);
  Result<uint64_t> crc_of_pack(ObjectId object, recovery::Range range) const;
  void adopt_pack(ObjectId object, UniqueFd fd);
  Result<std::shared_ptr<const catalog::AskedNames>> asked_names();
  // What a list of this node's operator wants of names; nothing: there is none.
  std::shared_ptr<const digests::Expected> expected() const;
  // The places of its export in each of the pools.
  async::KeyedPart files_part() { return services_->part(services_->files_pool, *exports_, key(), id()); }
  async::KeyedPart packs_part() { return services_->part(services_->packs_pool, *exports_, key(), id()); }
  async::KeyedPart lists_part() { return services_->part(services_->lists_pool, *exports_, key(), id()); }
  const std::string& id() const { return transfer_.id(); }
  void finish_pack(ObjectId object);
  void name_pack(ObjectId object);
  struct Pack {
    std::shared_ptr<gather::PackMemory> memory;
    std::shared_ptr<exports::Unpacking> unpacker;  // once it is complete
  };
  struct Bound {  // whose quotas count, as Quotas has it
    std::string who;
    std::vector<exports::QuotaOf> of;
  };
  std::vector<Bound> bounds(const std::vector<std::string>& paths) const;
  void tell_ceiling(const std::vector<Bound>& bounds) const;
  // May it take this beneath what these paths lead to, with all that it has?
  Status admit(const std::vector<std::string>& paths, const std::vector<catalog::File>& more);
  Result<ListReader::Part> admitted(const std::vector<std::string>& paths, Result<ListReader::Part> part);
  Status without_file(ObjectId object) const;  // what work on a file comes to that is not open
  // Answers with what `work` finds of the object's unfinished file.
  template <typename Answer>
  void run_on_file(ObjectId object, std::function<Status(exports::DestinationFile&)> work);

  const std::shared_ptr<Services> services_;
  const std::weak_ptr<EventQueue> queue_;
  const transfer::Transfer& transfer_;
  const std::shared_ptr<const exports::Exports> exports_;  // as the peer may use them; blocking, any thread
  std::shared_ptr<ListReader> list_;                       // of a source, until it has ended
  std::vector<std::shared_ptr<exports::SourceFile>> sources_;  // by object, as the next
  std::vector<Destination> destinations_;
  std::vector<std::shared_ptr<UniqueFd>> fetched_;
  std::map<ObjectId, Pack> packs_;
  std::shared_ptr<const catalog::AskedNames> asked_;  // once it is made
  // Of files that are read back for their digests, from the first piece to the last.
  std::map<ObjectId, std::shared_ptr<digests::Several>> digesting_;
  std::string key_;                                  // once it is known
  std::vector<exports::Reservation> reserved_;       // while files are let go of
  std::map<ObjectId, exports::Reservation> closed_;  // of a destination, until they are opened again
};

}  // namespace sluice::runtime
