/* The C interface of the crate raptorq (RFC 6330), which src/raptorq.rs implements.
 *
 * Any thread; a plan may be used by several at once. What a call allocates comes from the arena that it is
 * given and is gone when it returns. If the arena is too small, the rest comes from malloc and is counted. A
 * panic of the crate becomes SLUICE_RAPTORQ_REFUSED. Repair symbol r has the encoding symbol id K + r of RFC
 * 6330.
 * SPDX-License-Identifier: Apache-2.0
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_raptorq_plan; /* what encoding costs once for each K */

struct sluice_raptorq_arena {
  uint8_t* bytes;
  size_t size;
  size_t used_max; /* out: the most that was in use at a time */
  size_t missed;   /* out: bytes that came from malloc */
};

/* All symbols of a block have symbol_bytes bytes. Source symbols from source_count to K are zeros. */
struct sluice_raptorq_block {
  uint32_t source_symbols; /* K */
  uint32_t symbol_bytes;
  uint32_t source_count;        /* 1 to K */
  const uint8_t* const* source; /* source_count of them; NULL: it is missing */
};

enum { SLUICE_RAPTORQ_DONE = 0, SLUICE_RAPTORQ_NEEDS_MORE = 1, SLUICE_RAPTORQ_REFUSED = 2 };

/* NULL: there is none for such a K. To be freed by sluice_raptorq_plan_free. */
struct sluice_raptorq_plan* sluice_raptorq_plan_new(uint32_t source_symbols);
void sluice_raptorq_plan_free(struct sluice_raptorq_plan* plan);

/* Writes repair symbols first_id and so on to `repair`, which has `repair_count` places. None of `source` is
 * NULL. */
int sluice_raptorq_encode(const struct sluice_raptorq_plan* plan, const struct sluice_raptorq_block* block,
                          uint32_t first_id, uint8_t* const* repair, uint32_t repair_count,
                          struct sluice_raptorq_arena* arena);

/* Writes source symbol i to out[i], for each i whose source is NULL. */
int sluice_raptorq_decode(const struct sluice_raptorq_block* block, uint8_t* const* out,
                          const uint32_t* repair_ids, const uint8_t* const* repair, uint32_t repair_count,
                          struct sluice_raptorq_arena* arena);

#ifdef __cplusplus
}
#endif
