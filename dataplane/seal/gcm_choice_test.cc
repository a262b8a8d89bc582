// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/gcm_choice.h"

#include <gtest/gtest.h>

namespace sluice::seal {
namespace {

TEST(GcmChoice, TakesOurOwnOnlyWhereItIsATenthQuicker) {
  EXPECT_EQ(quickest(true, true, {.ipsec_mb_ns = 1982, .vaes_ns = 1040}), GcmEngine::kVaes);
  EXPECT_EQ(quickest(true, true, {.ipsec_mb_ns = 1000, .vaes_ns = 899}), GcmEngine::kVaes);
  EXPECT_EQ(quickest(true, true, {.ipsec_mb_ns = 1000, .vaes_ns = 900}), GcmEngine::kIpsecMb);
  EXPECT_EQ(quickest(true, true, {.ipsec_mb_ns = 500, .vaes_ns = 1040}), GcmEngine::kIpsecMb);
}

TEST(GcmChoice, TakesWhatThereIs) {
  EXPECT_EQ(quickest(true, false, {}), GcmEngine::kIpsecMb);
  EXPECT_EQ(quickest(false, true, {}), GcmEngine::kVaes);
  EXPECT_EQ(quickest(false, false, {}), GcmEngine::kOpenSsl);
}

TEST(GcmChoice, RunsHereAndStays) {
  const GcmChoice& choice = gcm_choice();
  EXPECT_TRUE(gcm_engine_runs(choice.engine));
  EXPECT_EQ(best_gcm_engine(), choice.engine);
  const bool compared = gcm_engine_runs(GcmEngine::kIpsecMb) && gcm_engine_runs(GcmEngine::kVaes);
  EXPECT_EQ(choice.times.ipsec_mb_ns != 0, compared);
  EXPECT_EQ(choice.times.vaes_ns != 0, compared);
}

}  // namespace
}  // namespace sluice::seal
