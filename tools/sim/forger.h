// A stranger on the wire: a copy of a true datagram, false in one field, and right in its CRC if it is under
// one: keys he has none.
//
// Pure. Payload and place of data stay as they are: wrong bytes under a right CRC are found by the digest of
// their file, and end a session; what is shown here is that nothing else does. Of parity anything may be
// false: what it decodes to has a digest of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "tools/sim/plan.h"
#include "tools/sim/random.h"

namespace sluice::sim {

class Forger {
 public:
  Forger(const Plan& plan, uint32_t node)
      : per_million_(plan.forged_per_million),
        crc_(plan.crc),
        protection_(plan.agreed_protection()),
        random_(plan.seed, 200 + node) {}

  // Whether one follows this frame. It is then in forged().
  bool follows(std::span<const uint8_t> frame);
  std::span<const uint8_t> forged() const { return frame_; }
  uint64_t count() const { return count_; }

 private:
  uint64_t value_near(uint64_t true_value);
  void change_header(uint8_t* header);
  void change_parity(std::vector<uint8_t>* frame);
  void change_status(std::vector<uint8_t>* payload);

  const uint64_t per_million_;
  const wire::CrcKind crc_;
  const wire::Protection protection_;
  Random random_;
  std::vector<uint8_t> frame_;
  uint64_t count_ = 0;
};

}  // namespace sluice::sim
