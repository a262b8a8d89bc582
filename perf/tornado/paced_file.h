// A file from one socket of this machine to another at the rate of a slow link, as a program of the kind that
// Tornado's authors describe would send it: well at first, then with one mistake more each time.
//
// Nothing is lost. What their mistakes were is not known; these are the ones that their text and what it
// leaves out suggest. Each datagram takes as long on the link as one of Sluice's does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::tornado {

// In this order; each has those before it.
enum class Mistake : uint8_t {
  kNone,
  kEncodesFirst,      // all repair symbols are made before the first datagram leaves
  kOneEncoder,        // K follows from the size of the file
  kDecodesIntact,     // every block goes through the decoder, also one that misses nothing
  kWholeFileBuffer,   // what arrives stays in memory until all of it is there, and is written then
  kOneThread,         // decoding happens where datagrams are received
  kOneCallPerSymbol,  // a system call sends, and one receives, one symbol
};

struct Sending {
  uint64_t bytes = 10'000'000;
  uint64_t rate_bps = 12'000'000;
  Mistake mistakes = Mistake::kNone;  // up to this one
  const char* folder = "/tmp";        // of the source and of what arrives
};

// One JSON object: `seconds` from the beginning until the last byte is written, and `cpu_s` of the process
// meanwhile. 1: it did not arrive, and stderr says why.
int ask_time(const Sending& sending);

}  // namespace sluice::tornado
