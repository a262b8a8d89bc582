/* The C interface of the crate blake3, which blake3/src/lib.rs implements.
 *
 * Any thread; one hasher is used by one thread at a time. The crate chooses SSE, AVX2 or AVX-512 by the CPU.
 * SPDX-License-Identifier: Apache-2.0
 */
#pragma once

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

#ifdef __cplusplus
}
#endif
