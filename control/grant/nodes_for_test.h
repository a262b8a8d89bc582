// Nodes with identities of their own, each of which trusts the others. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "control/identity/trust.h"

namespace sluice::grant {

class NodesTest : public testing::Test {
 protected:
  explicit NodesTest(std::initializer_list<const char*> names) {
    std::filesystem::remove_all(root_);
    for (const char* const name : names) {
      EXPECT_TRUE(identity::create(root_ / name, name));
      nodes_.push_back(*identity::load(root_ / name));
    }
  }
  ~NodesTest() override { std::filesystem::remove_all(root_); }

  const identity::Identity& node(size_t i) const { return nodes_[i]; }
  static identity::Peer peer(const identity::Identity& self) {
    return {.name = self.name,
            .address = self.name + ":7400",
            .fingerprint = self.fingerprint,
            .certificate_pem = self.certificate_pem};
  }
  identity::Trust trust() const {
    std::vector<identity::Peer> peers;
    for (const identity::Identity& each : nodes_) peers.push_back(peer(each));
    return identity::Trust(std::move(peers));
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("sluice-grant-" + std::to_string(::getpid()));

 private:
  std::vector<identity::Identity> nodes_;
};

}  // namespace sluice::grant
