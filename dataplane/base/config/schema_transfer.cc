// Keys of [transfer]; see schema.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/problems.h"
#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

constexpr uint64_t kTi = 1ULL << 40;

const Key kTransferKeys[] = {
    {.section = "transfer",
     .name = "lanes",
     .type = ValueType::kInteger,
     .field = &Node::lanes,
     .min = 1,
     .max = 16,
     .unit = "lanes",
     .meaning = "UDP flows of a session; the smaller number of both nodes is used."},
    {.section = "transfer",
     .name = "crc",
     .type = ValueType::kChoice,
     .field = &Node::crc,
     .choices = "crc64 crc32c",
     .meaning = "Checksum of chunks, extents and files."},
    {.section = "transfer",
     .name = "protection",
     .type = ValueType::kChoice,
     .field = &Node::protection,
     .choices = "crc aes-128-gcm aes-256-gcm",
     .meaning =
         "What data are under at least; the stricter one of both nodes counts. `crc` finds accidents, not "
         "attackers: for networks that you trust, and only if both nodes say so."},
    {.section = "transfer",
     .name = "mode",
     .type = ValueType::kChoice,
     .field = &Node::rate_mode,
     .choices = "adaptive fixed cubic",
     .meaning = "How a session's rate is found: docs/RATE.md."},
    {.section = "transfer",
     .name = "fec",
     .type = ValueType::kChoice,
     .field = &Node::fec,
     .choices = "off auto rs raptorq",
     .meaning = "Forward error correction: `auto` sends repair symbols ahead where that saves time, `rs` "
                "(Reed-Solomon) and "
                "`raptorq` wherever anything is lost, and demand it of the peer."},
    {.section = "transfer",
     .name = "rate",
     .type = ValueType::kRate,
     .field = &Node::rate_bps,
     .min = 100'000,
     .max = 800'000'000'000,
     .unit = "bit/s",
     .meaning = "Rate of one session on the wire, headers included, all its lanes together."},
    {.section = "transfer",
     .name = "chunk_bytes",
     .type = ValueType::kSize,
     .field = &Node::chunk_bytes,
     .min = 0,
     .max = 32768,
     .unit = "bytes",
     .allowed = "0, 256..32768 in steps of 4",
     .meaning = "Payload of one datagram; 0 takes 8192, or what fits the path.",
     .number_problem = chunk_problem},
    {.section = "transfer",
     .name = "partition_bytes",
     .type = ValueType::kSize,
     .field = &Node::partition_bytes,
     .min = 1U << 20,
     .max = kTi,
     .unit = "bytes",
     .allowed = "1MiB..1TiB, a multiple of `extent_bytes`",
     .meaning = "Part of a file that is given to one lane at a time."},
};

}  // namespace

std::span<const Key> transfer_keys() { return kTransferKeys; }

}  // namespace sluice::config
