// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/gf_product.h"

#include <isa-l/erasure_code.h>

#include <algorithm>

#include "dataplane/coding/block_code.h"

namespace sluice::coding {
namespace {

constexpr uint32_t kLineBytes = 64;
// So many bytes of each symbol at a time. Those of the next strip are fetched meanwhile: no prefetcher of a
// CPU follows as many streams as a block has symbols.
constexpr uint32_t kStripBytes = 512;

}  // namespace

void multiply(const Product& product, uint8_t* matrix, uint8_t* tables) {
  const auto columns = static_cast<int>(product.columns);
  const auto rows = static_cast<int>(product.rows);
  ec_init_tables(columns, rows, matrix, tables);
  uint8_t* in[kProductColumnsMax];
  uint8_t* out[kProductRowsMax];
  // ISA-L takes pointers that it could write through, and only reads.
  std::transform(product.in, product.in + product.columns, in,
                 [](const uint8_t* p) { return const_cast<uint8_t*>(p); });
  std::copy_n(product.out, product.rows, out);
  for (uint32_t at = 0; at < product.symbol_bytes;) {
    uint32_t bytes = product.symbol_bytes - at;
    if (bytes >= kStripBytes + kSymbolBytesMin) bytes = kStripBytes;
    at += bytes;
    const uint32_t ahead = std::min(kStripBytes + kSymbolBytesMin, product.symbol_bytes - at);
    for (uint32_t i = 0; i < product.columns; ++i) {
      for (uint32_t line = 0; line < ahead; line += kLineBytes)
        __builtin_prefetch(in[i] + bytes + line, 0, 2);
    }
    ec_encode_data(static_cast<int>(bytes), columns, rows, tables, in, out);
    for (uint32_t i = 0; i < product.columns; ++i) in[i] += bytes;
    for (uint32_t i = 0; i < product.rows; ++i) out[i] += bytes;
  }
}

}  // namespace sluice::coding
