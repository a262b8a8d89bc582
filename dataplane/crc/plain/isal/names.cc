// ISA-L's functions, as far as dataplane/crc calls them, for a program that is linked statically and so has
// no ISA-L. Linked into no other.
// SPDX-License-Identifier: Apache-2.0
#include <isa-l/crc.h>
#include <isa-l/crc64.h>
#include <isa-l/igzip_lib.h>

#include "dataplane/crc/plain/plain.h"

namespace plain = sluice::crc::plain;

extern "C" {

unsigned int crc32_iscsi(unsigned char* buffer, int len, unsigned int init_crc) {
  return plain::crc32c(init_crc, buffer, static_cast<size_t>(len));
}

uint64_t crc64_ecma_refl(uint64_t init_crc, const unsigned char* buf, uint64_t len) {
  return ~plain::crc64_ecma(~init_crc, buf, len);
}

uint32_t isal_adler32(uint32_t init, const unsigned char* buf, uint64_t len) {
  return plain::adler32(init, buf, len);
}
}
