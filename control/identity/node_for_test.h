// A node that trusts an authority, in a folder of its own. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "control/identity/authority_for_test.h"
#include "control/identity/identity.h"
#include "dataplane/base/config/config.h"

namespace sluice::identity {

class NodeOfAuthority : public testing::Test {
 protected:
  NodeOfAuthority() {
    char name[] = "/tmp/sluice-trust-XXXXXX";
    root_ = ::mkdtemp(name);
    EXPECT_TRUE(create(root_ / "alpha", "alpha"));
    node_.directory = root_ / "alpha";
    node_.name = "alpha";
    node_.ca_file = root_ / "ca.pem";
    write(node_.ca_file, ca_.pem());
  }
  ~NodeOfAuthority() override { std::filesystem::remove_all(root_); }

  static void write(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
    ::chmod(file.c_str(), 0644);
  }

  std::filesystem::path root_;
  config::Node node_;
  const Issued ca_ = make_authority("CA of the test");
};

}  // namespace sluice::identity
