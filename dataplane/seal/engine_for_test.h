// Tests that run with each engine of AES-GCM that this CPU has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "dataplane/seal/gcm.h"

namespace sluice::seal {

class EveryEngine : public testing::TestWithParam<GcmEngine> {
 protected:
  void SetUp() override {
    if (!gcm_engine_runs(GetParam())) GTEST_SKIP() << "this CPU lacks what it needs";
  }
};

inline std::string engine_test_name(const testing::TestParamInfo<GcmEngine>& each) {
  std::string name = gcm_engine_name(each.param);
  std::erase(name, '-');
  return name;
}

}  // namespace sluice::seal
