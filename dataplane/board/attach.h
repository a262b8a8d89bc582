// How control reaches the dataplane: messages over a SOCK_SEQPACKET unix socket, with descriptors.
//
// Cold. One client at a time: a second connection while one lives is refused with EBUSY. The
// dataplane checks every field; the client is control, but the boundary is a privilege boundary.
// A connection's end closes nothing: flows go on, and the next control finds them on the board. It fetches
// the descriptors of their objects: the lock on an unfinished file lives in them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/board/layout.h"
#include "dataplane/board/sums.h"

namespace sluice::board {

enum class AttachKind : uint32_t {
  kHello = 1,         // -> reply carries the board's memfd
  kOpenObject = 2,    // with one descriptor, unless kObjectDiscard or kObjectGenerate
  kCloseObject = 3,   // answered once no I/O on it is left; its flows have no partition of it then
  kCloseSession = 4,  // closes every object of the session slot
  kFetchObject = 5,   // -> reply carries the descriptor that kOpenObject passed, and its size
  kFlowKeys = 6,  // the secret of a flow, before kOpenFlow is given on the board: it does not open without
  kLogLevel = 7,  // of the daemon's own log, from now on: `level`; the reply says which it is then
};

inline constexpr size_t kFlowSecretBytes = 32;
inline constexpr uint32_t kLogLevels = 7;               // from 0, trace, to 6, off (dataplane/base/log.h)
inline constexpr uint32_t kLogLevelAsked = 0xFFFFFFFF;  // as `level`: only say which it is

enum ObjectFlags : uint32_t {
  kObjectWrite = 1U << 0,     // a destination; otherwise a source
  kObjectDirect = 1U << 1,    // the descriptor is O_DIRECT: lengths are rounded up to 4096
  kObjectDiscard = 1U << 2,   // destination without storage: bytes are checked and dropped
  kObjectGenerate = 1U << 3,  // source without storage: bytes from a fixed pattern in memory
};

struct AttachRequest {
  AttachKind kind{};
  uint32_t session = 0;  // session slot
  uint32_t object = 0;
  uint32_t flags = 0;  // ObjectFlags
  uint64_t size = 0;   // bytes
  uint32_t extent_bytes = 0;
  uint32_t level = 0;  // kLogLevel
  uint64_t base = 0;   // kOpenObject: where in the file the object begins, a multiple of 4096
  // kFlowKeys. The secret is nowhere else: not on the board, not in a journal. Both sides wipe it after use.
  uint32_t flow = 0;        // flow slot
  uint32_t tag = 0;         // that the flow's config will have
  uint32_t protection = 0;  // wire::Protection of its data
  uint32_t sums = 0;        // kOpenObject, of a destination: that are computed of its extents, as bits
  uint8_t secret[kFlowSecretBytes] = {};  // docs/WIRE.md, "Seal"
};

struct AttachReply {
  AttachKind kind{};
  int32_t status = 0;        // 0 or errno
  uint64_t board_bytes = 0;  // kHello; kFetchObject: size of the object; kLogLevel: the level
};

// A daemon of another build may be at the other end.
static_assert(SLUICE_BYTES(AttachRequest, 88) && SLUICE_AT(AttachRequest, kind, 0) &&
              SLUICE_AT(AttachRequest, session, 4) && SLUICE_AT(AttachRequest, object, 8) &&
              SLUICE_AT(AttachRequest, flags, 12) && SLUICE_AT(AttachRequest, size, 16) &&
              SLUICE_AT(AttachRequest, extent_bytes, 24) && SLUICE_AT(AttachRequest, level, 28) &&
              SLUICE_AT(AttachRequest, base, 32) && SLUICE_AT(AttachRequest, flow, 40) &&
              SLUICE_AT(AttachRequest, tag, 44) && SLUICE_AT(AttachRequest, protection, 48) &&
              SLUICE_AT(AttachRequest, sums, 52) && SLUICE_AT(AttachRequest, secret, 56));
static_assert(SLUICE_BYTES(AttachReply, 16) && SLUICE_AT(AttachReply, kind, 0) &&
              SLUICE_AT(AttachReply, status, 4) && SLUICE_AT(AttachReply, board_bytes, 8));

}  // namespace sluice::board
