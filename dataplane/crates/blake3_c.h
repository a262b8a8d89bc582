/* The C interface of the crate blake3, which src/blake3.rs implements.
 *
 * Any thread; one hasher is used by one thread at a time. The crate chooses SSE, AVX2 or AVX-512 by the CPU.
 * Only sluice_blake3_new allocates.
 *
 * A message is hashed as a tree: each node joins the longest left part whose length is a power of two (of
 * 1024 bytes and more) with what is left. A part that begins at a multiple of such a length, and is that long
 * or ends with the message, is a subtree. It has a value of its own, which depends on where the part begins.
 * SPDX-License-Identifier: Apache-2.0
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SLUICE_BLAKE3_BYTES = 32 };

struct sluice_blake3_hasher;

/* To be freed by sluice_blake3_free. */
struct sluice_blake3_hasher* sluice_blake3_new(void);
void sluice_blake3_free(struct sluice_blake3_hasher* hasher);
void sluice_blake3_update(struct sluice_blake3_hasher* hasher, const uint8_t* data, size_t bytes);
/* Writes SLUICE_BLAKE3_BYTES. More may be added afterwards. */
void sluice_blake3_finish(const struct sluice_blake3_hasher* hasher, uint8_t* digest);

/* Begins anew, with a subtree that begins at this byte of the message: a multiple of its length, which a
 * subtree at byte 0 has without a limit. */
void sluice_blake3_begin_at(struct sluice_blake3_hasher* hasher, uint64_t offset);
/* Writes the value of the subtree, SLUICE_BLAKE3_BYTES. It is not empty, and not the whole message. */
void sluice_blake3_finish_subtree(const struct sluice_blake3_hasher* hasher, uint8_t* value);
/* The value of two subtrees that are neighbours and make one; `root`: they are the whole message, and this is
 * its digest. */
void sluice_blake3_join(const uint8_t* left, const uint8_t* right, bool root, uint8_t* value);

#ifdef __cplusplus
}
#endif
