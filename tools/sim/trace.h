// What happened, as a hash that two runs of one seed must share, and the last events for a person.
//
// Pure. Every frame, completion, command, event, message and fault goes in, with its time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "tools/sim/nodes.h"
#include "tools/sim/random.h"

namespace sluice::sim {

// How often a run came to what it is meant to try.
struct Reached {
  uint64_t attempts = 0;
  uint64_t adoptions = 0;  // of flows, by a restarted control
  uint64_t needs = 0;
  uint64_t rereads = 0;
  uint64_t syncs = 0;
  uint64_t failed_syncs = 0;
  uint64_t resumed = 0;  // objects of which an attempt found bytes of an earlier one
  uint64_t pauses = 0;
  uint64_t renewals = 0;            // calls to renew a control stream while data moved
  uint64_t read_backs = 0;          // of files whose disk had failed
  uint64_t partings = 0;            // peers that were told of an end they had missed
  uint64_t inquiries = 0;           // whether a session is still known where it began
  uint64_t freezes = 0;             // of a control
  uint64_t queued = 0;              // attempts that waited for a place of their node
  uint64_t narrowed = 0;            // attempts whose chunks are those that the path carries
  uint64_t objects_failed = 0;      // that a source was told of
  uint64_t growths = 0;             // of a list, while data moved, at either node
  uint64_t legs_killed = 0;         // whose workers closed their flows
  uint64_t decoded_chunks = 0;      // that repair symbols replaced, on a flow that was open last
  uint64_t restored_bytes = 0;      // that had travelled compressed, on a flow that was open last
  uint64_t of_several = 0;          // sessions of several sources that got all their files
  uint64_t liars_named = 0;         // sessions that ended because of a source, and named it
  uint64_t leases_taken = 0;        // by a node under a higher epoch, or for the first time
  uint64_t leases_refused = 0;      // calls under an epoch that is over, or that another node has
  uint64_t grants_taken = 0;        // calls whose grant a destination found good
  uint64_t grants_refused = 0;      // calls
  uint64_t grants_shown_twice = 0;  // by another node, while their session ran

  void add(const Reached& o) {
    attempts += o.attempts;
    adoptions += o.adoptions;
    needs += o.needs;
    rereads += o.rereads;
    syncs += o.syncs;
    failed_syncs += o.failed_syncs;
    resumed += o.resumed;
    pauses += o.pauses;
    renewals += o.renewals;
    read_backs += o.read_backs;
    partings += o.partings;
    inquiries += o.inquiries;
    freezes += o.freezes;
    queued += o.queued;
    narrowed += o.narrowed;
    objects_failed += o.objects_failed;
    growths += o.growths;
    legs_killed += o.legs_killed;
    decoded_chunks += o.decoded_chunks;
    restored_bytes += o.restored_bytes;
    of_several += o.of_several;
    liars_named += o.liars_named;
    leases_taken += o.leases_taken;
    leases_refused += o.leases_refused;
    grants_taken += o.grants_taken;
    grants_refused += o.grants_refused;
    grants_shown_twice += o.grants_shown_twice;
  }
};

class Trace {
 public:
  // `what` is a literal: it is kept as a pointer, and hashed by its characters.
  void add(uint64_t now_ns, uint32_t node, const char* what, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
    uint64_t name = 0;
    for (const char* at = what; *at != 0; ++at) name = name * 131 + static_cast<uint8_t>(*at);
    hash_ = mix(hash_ ^ mix(now_ns + name) ^ (a + 3 * b + 7 * c + node));
    last_[count_++ % last_.size()] = {now_ns, node, what, a, b, c};
    if (print_) std::printf("%s\n", text(last_[(count_ - 1) % last_.size()]).c_str());
  }
  // A line of a log, for whoever reads.
  void note(uint64_t now_ns, uint32_t node, const std::string& text) {
    add(now_ns, node, "log", std::hash<std::string>()(text));
    if (print_)
      std::printf("%14.6f ms  %s  %s\n", static_cast<double>(now_ns) * 1e-6, node_name(node), text.c_str());
  }
  void print(bool on) { print_ = on; }
  uint64_t hash() const { return hash_; }
  uint64_t count() const { return count_; }
  Reached reached;
  // The last `n` events, one a line.
  std::string tail(size_t n) const {
    std::string out;
    const uint64_t have = count_ < last_.size() ? count_ : last_.size();
    for (uint64_t i = count_ - (have < n ? have : n); i < count_; ++i) {
      out += text(last_[i % last_.size()]) + "\n";
    }
    return out;
  }

 private:
  struct Entry {
    uint64_t now_ns = 0;
    uint32_t node = 0;
    const char* what = "";
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t c = 0;
  };
  static std::string text(const Entry& e) {
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "%14.6f ms  %s  %-22s %llu %llu %llx",
                  static_cast<double>(e.now_ns) * 1e-6, node_name(e.node), e.what,
                  static_cast<unsigned long long>(e.a), static_cast<unsigned long long>(e.b),
                  static_cast<unsigned long long>(e.c));
    return line.data();
  }

  uint64_t hash_ = 0;
  uint64_t count_ = 0;
  bool print_ = false;
  std::array<Entry, 512> last_{};
};

}  // namespace sluice::sim
