// Which neighbours answer, and at which link address: reachability as RFC 4861 7.3 has it, for ARP as well.
//
// Pure, with the time as an argument; one owner at a time, no allocation. A neighbour that is used is
// *reachable* while something confirms it: its answer to what we asked, or datagrams of a flow over it that
// came back (7.3.1). Unconfirmed, it is *probed* at the address we know, and used meanwhile; if it does not
// answer it is *sought* anew, and not used. Whoever names another address changes nothing of a neighbour
// that was reachable (stricter than 7.2.5): the one we know is asked, and is sought if it is silent.
// *Heard* is one that asked for us, and that we have not used: it is probed when it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "dataplane/net/address.h"

namespace sluice::net {

struct LinkAddress {
  uint8_t bytes[6] = {};
  static LinkAddress of(const uint8_t* six_bytes) {
    LinkAddress link;
    std::memcpy(link.bytes, six_bytes, sizeof link.bytes);
    return link;
  }
  bool operator==(const LinkAddress&) const = default;
};

class NeighbourTable {
 public:
  static constexpr uint32_t kEntries = 128;
  static constexpr uint64_t kReachableNs = 5'000'000'000;  // without a confirmation
  static constexpr uint64_t kProbeNs = 300'000'000;        // between probes
  static constexpr uint32_t kProbesMax = 3;
  static constexpr uint64_t kSeekNs = 100'000'000;  // between questions to all, the first kSeeksFast of them
  static constexpr uint64_t kSeekSlowNs = 1'000'000'000;
  static constexpr uint32_t kSeeksFast = 10;
  static constexpr uint64_t kUsedNs = 10'000'000'000;  // one that was used since then keeps its place

  enum class State : uint8_t { kNone, kHeard, kSought, kReachable, kProbed, kFixed };
  enum class Ask : uint8_t { kNobody, kNeighbour, kAll };
  struct Way {
    bool known = false;  // `link` is where packets go
    LinkAddress link;
    Ask ask = Ask::kNobody;  // whom to ask for the address now: `link` alone, or everybody
    bool lost = false;       // it has just turned out to be silent
    uint64_t again_ns = 0;   // when to come back
  };
  enum class Word : uint8_t {
    kAnswer,        // to us, of whose address it is
    kQuestion,      // for our address
    kAnnouncement,  // to everybody, of a new address
  };

  // From the configuration: nothing that is heard changes it.
  void fix(const Address& ip, const LinkAddress& link);
  // A packet is to be sent to this neighbour, and the last datagram that proves that it forwards what it gets
  // came back at `confirmed_ns` (0: none).
  Way want(const Address& ip, uint64_t confirmed_ns, uint64_t now_ns);
  // True when it names another address than the one that is known.
  bool hear(const Address& ip, const LinkAddress& link, Word word, uint64_t now_ns);

  State state(const Address& ip) const;  // for tests

 private:
  struct Entry {
    State state = State::kNone;
    bool proven = false;  // it was reachable at `link`
    uint32_t asked = 0;   // since it is probed or sought
    Address ip;
    LinkAddress link;
    uint64_t since_ns = 0;  // of the state; when reachable, of the last confirmation
    uint64_t next_ask_ns = 0;
    uint64_t used_ns = 0;
  };
  Entry* find(const Address& ip);
  Entry* place_for(const Address& ip, uint64_t now_ns);  // nullptr: all places are in use
  static void enter(Entry* entry, State state, uint64_t now_ns);
  static Way probe(Entry* entry, uint64_t confirmed_ns, uint64_t now_ns);
  static Way seek(Entry* entry, uint64_t now_ns);

  Entry entries_[kEntries];
};

}  // namespace sluice::net
