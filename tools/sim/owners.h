// The judge of who may write at the destination: the owner of a lease alone, and the holder of a grant, once
// and in its time.
//
// Pure. Knows what a world has given out, and shares no code with what it judges. Each answer is empty, or
// says what is wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace sluice::sim {

class Owners {
 public:
  struct Lease {
    uint32_t node = 0;
    uint64_t epoch = 0;
  };
  struct Grant {
    uint32_t holder = 0;
    int64_t start_by_unix_ns = 0;
    int64_t end_by_unix_ns = 0;
  };
  void leased(const std::string& session, const Lease& lease) { leases_[session] = lease; }
  void granted(const std::string& session, const Grant& grant) { grants_[session] = grant; }

  // The destination makes files, or opens flows, for a call of this node.
  std::string begins(const std::string& session, uint32_t caller, int64_t unix_ns);
  // Its journal has the end of this session.
  void ended(const std::string& session) { ended_.insert(session); }
  // It has lost its journal, and knows of no session that ended.
  void forgot() {
    ended_.clear();
    begun_.clear();
  }
  void bind(uint64_t inode, const std::string& session) { sessions_[inode] = session; }
  // Somebody has seen long ago that the grants are over.
  void grants_are_over() { over_ = true; }
  std::string wrong_writer(uint64_t inode) const;

 private:
  std::map<std::string, Lease> leases_;
  std::optional<Lease> owner_;  // under the highest epoch that has begun
  std::map<std::string, Grant> grants_;
  std::set<std::string> begun_;
  std::set<std::string> ended_;
  std::map<uint64_t, std::string> sessions_;  // by inode at the destination
  bool over_ = false;
};

}  // namespace sluice::sim
