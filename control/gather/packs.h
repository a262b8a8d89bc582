// Packs in memory: filled from files at a source, unpacked into files at a destination (control/tree/pack.h).
//
// A pack lies in a file of memory (memfd), which the dataplane reads or writes as any other. When the process
// ends nothing is left of it: it is filled, or asked for, again.
//
// Blocking, on a pool of their own (services.h), so that they hold up no journal and no sync of another
// session; empty memory is made anywhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "control/catalog/asked_names.h"
#include "control/catalog/catalog.h"
#include "control/exports/exports.h"
#include "dataplane/base/check.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::gather {

// Threads of the pool of packs, on so many cores: each pack waits for its disk twice
// (control/exports/unpack.h), and has a core to itself in between. No session has more than 16 open
// (docs/WIRE.md 2.7).
constexpr uint32_t pack_threads(uint32_t cores) { return std::clamp(2 * cores, 4U, 16U); }

class PackMemory {
 public:
  // Of so many zero bytes. kResources.
  static Result<std::shared_ptr<PackMemory>> make(uint64_t bytes);
  // Of a former control: kResources unless it is a pack's.
  static Result<std::shared_ptr<PackMemory>> adopt(UniqueFd fd, uint64_t bytes);
  ~PackMemory();
  PackMemory(const PackMemory&) = delete;
  PackMemory& operator=(const PackMemory&) = delete;

  int fd() const { return fd_.get(); }
  std::span<uint8_t> bytes() const { return bytes_; }

 private:
  PackMemory(UniqueFd fd, std::span<uint8_t> bytes) : fd_(std::move(fd)), bytes_(bytes) {
    DCHECK(fd_ && !bytes_.empty(), "a pack is in memory");
  }
  const UniqueFd fd_;
  const std::span<uint8_t> bytes_;
};

// The memory of a pack, as whoever only reads it has it.
class PackView {
 public:
  // kResources unless it is that of so many bytes.
  static Result<PackView> of(int fd, uint64_t bytes);
  PackView(PackView&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  PackView& operator=(PackView&&) = delete;
  ~PackView();

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  explicit PackView(std::span<uint8_t> bytes) : bytes_(bytes) {}
  std::span<uint8_t> bytes_;
};

// Reads the files of a pack, as its list says. What is not as it was listed is in the pack as a failure.
Result<std::shared_ptr<PackMemory>> fill_pack(const exports::Exports& exports, const catalog::File& pack);

// The first of the names of a pack that is not to be had as it was: those that changed, then all others.
std::vector<catalog::FailedName> names_of_changed(const exports::Exports& exports, const catalog::File& pack);

// Where the names of a pack are staged.
std::string staging_name(const std::string& session_id, ObjectId object);
// Under `pack.path`. `asked`: which names may come, where this node asked for them; nullptr: any. `expected`:
// what a list of this node wants of them.
Result<std::shared_ptr<exports::Unpacking>> stage_pack(const exports::Exports& exports,
                                                       const catalog::File& pack, const PackMemory& memory,
                                                       const std::string& staging,
                                                       const catalog::AskedNames* asked,
                                                       std::shared_ptr<const digests::Expected> expected);
// By this process itself. `umask`: bits of modes that no name gets.
Result<std::shared_ptr<exports::Unpacking>> stage_here(
    const exports::Exports& exports, const catalog::File& pack, std::span<const uint8_t> bytes,
    const std::string& staging, const catalog::AskedNames* asked,
    std::shared_ptr<const digests::Expected> expected, mode_t umask = 0);

}  // namespace sluice::gather
