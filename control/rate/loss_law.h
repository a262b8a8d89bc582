// How much of what is sent arrives, by its length, and which length brings most.
//
// Pure. On some channels a datagram is lost the more surely the longer it is: P(arrives) = k exp(-L / L0),
// where k is what loss leaves that does not depend on the length (docs/SOURCES.md, HIPSTER). k and L0 are
// fitted to counts of probes of several sizes, by the greatest likelihood. A sender that is limited by
// datagrams would do best with chunks of L0 bytes; one that is paced by bytes on the wire, as a lane is, with
// shorter ones, since payload that arrives for each byte of wire is what counts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::rate {

struct SizeSample {  // probes as long as datagrams with such a chunk
  uint32_t chunk_bytes = 0;
  uint64_t sent = 0;
  uint64_t arrived = 0;
};

struct LossLaw {
  double kept = 1;            // of datagrams without length
  double per_byte = 0;        // 1 / L0; 0: loss does not depend on the length
  double overhead_bytes = 0;  // of a datagram, besides its chunk

  double arrives(uint32_t chunk_bytes) const;
};
LossLaw fit_loss(std::span<const SizeSample> samples, uint32_t overhead_bytes);

// What the law says of one size.
struct SizePoint {
  SizeSample sample;
  double arrives = 0;  // of datagrams
  double goodput = 0;  // payload that arrives for each byte of wire: what a sender limited by bytes looks for
  double payload_bytes = 0;  // that arrive for each datagram: what one limited by datagrams does
};
struct SizeCurve {
  LossLaw law;
  std::vector<SizePoint> points;
  uint32_t best_chunk_bytes = 0;
  double gain = 1;   // of its goodput, over that of the longest size that was tried
  bool cut = false;  // long ones are lost that the law would let arrive: the path does not carry them
};
// Samples from the shortest. `wire_bytes`: what is on the wire besides the datagram.
SizeCurve curve_of(std::span<const SizeSample> samples, uint32_t overhead_bytes, uint32_t wire_bytes);

}  // namespace sluice::rate
