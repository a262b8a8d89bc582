// The files (objects) that are open in the dataplane: numbers, a descriptor, a size. Never a name.
//
// Opened and closed by the main thread (cold), read by workers without a lock: a slot is an atomic
// pointer. To close, the main thread clears the slot, waits until every worker has passed a quiet
// point (WorkerEpochs) and no extent of the object is in use, and then frees it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "dataplane/base/check.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/board/attach.h"
#include "dataplane/board/board.h"
#include "storage/memory_file.h"

namespace sluice::lane {

struct Object {
  uint32_t session = 0;
  uint32_t id = 0;
  uint32_t flags = 0;  // board::ObjectFlags
  uint32_t extent_bytes = 0;
  uint64_t size = 0;
  uint64_t base = 0;  // where it begins in the file
  uint32_t sums = 0;  // destination: of its extents, as bits (dataplane/board/sums.h)
  UniqueFd fd;
  std::unique_ptr<storage::Mapping> mapping;  // of a file in memory: its bytes are moved from or to here
  std::atomic<uint32_t> extents_in_use{0};
  // Destination: one bit per extent, set once it is written.
  std::unique_ptr<std::atomic<uint64_t>[]> written;

  uint64_t extent_count() const { return (size + extent_bytes - 1) / extent_bytes; }
  uint32_t extent_length(uint64_t number) const {  // number < extent_count()
    DCHECK(number < extent_count(), "an extent is one of its object's");
    const uint64_t left = size - number * extent_bytes;
    return left < extent_bytes ? static_cast<uint32_t>(left) : extent_bytes;
  }
  // The only extent of an object is the whole of it.
  bool is_one_extent() const { return size <= extent_bytes; }
  uint64_t written_bytes() const { return written == nullptr ? 0 : 8 * (extent_count() / 64 + 1); }
  bool is(board::ObjectFlags flag) const { return (flags & flag) != 0; }
  // Of a destination; number < extent_count().
  bool has_written(uint64_t number) const {
    DCHECK(is(board::kObjectWrite) && number < extent_count(), "an extent is one of its destination's");
    return (written[number / 64].load(std::memory_order_relaxed) >> (number % 64)) & 1;
  }
  void set_written(uint64_t number) {
    written[number / 64].fetch_or(1ULL << (number % 64), std::memory_order_relaxed);
  }
  void set_all_written() {
    for (uint64_t i = 0; i < extent_count() / 64 + 1; ++i) written[i].store(~0ULL, std::memory_order_relaxed);
  }
  void clear_written(uint64_t number) {
    written[number / 64].fetch_and(~(1ULL << (number % 64)), std::memory_order_relaxed);
  }
};

class ObjectTable {
 public:
  ObjectTable() = default;
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;
  // After every worker has ended.
  ~ObjectTable() {
    for (auto& session : slots_) {
      for (auto& slot : session) delete slot.load(std::memory_order_relaxed);
    }
  }

  // Worker: the object, or nullptr. Valid until the worker's next quiet point, or for as long as it
  // holds a count in extents_in_use.
  Object* find(uint32_t session, uint32_t id) const {
    Object* object = slot(session, id).load(std::memory_order_acquire);
    return object != nullptr && object->id == id ? object : nullptr;
  }
  // Main thread.
  Object* at(uint32_t session, uint32_t index) const {
    return slots_[session][index].load(std::memory_order_acquire);
  }
  bool publish(std::unique_ptr<Object> object) {
    auto& s = slots_[object->session][object->id % board::kOpenObjectsMax];
    if (s.load(std::memory_order_relaxed) != nullptr) return false;
    s.store(object.release(), std::memory_order_release);
    return true;
  }
  std::unique_ptr<Object> retract(uint32_t session, uint32_t index) {
    return std::unique_ptr<Object>(slots_[session][index].exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  const std::atomic<Object*>& slot(uint32_t session, uint32_t id) const {
    DCHECK(session < board::kSessionsMax, "who takes a session's number from control has compared it");
    return slots_[session][id % board::kOpenObjectsMax];
  }
  std::atomic<Object*> slots_[board::kSessionsMax][board::kOpenObjectsMax] = {};  // owned
};

}  // namespace sluice::lane
