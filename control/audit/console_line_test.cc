// SPDX-License-Identifier: Apache-2.0
#include "control/audit/console_line.h"

#include <gtest/gtest.h>

namespace sluice::audit {
namespace {

TEST(ConsoleLine, IsOneLineWhateverTheNamesAre) {
  const ConsoleAsked call{.user = "ada",
                          .uid = 1000,
                          .role = "operator",
                          .method = "Names/Remove",
                          .subject = "data/a\nb\xff",
                          .error = "data: \x1b[31m no"};
  const std::string line = console_asked(call, 0);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(line.find(R"("asked_by":"operator","user":"ada","uid":1000,"method":"Names/Remove")"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find(R"("result":"refused")"), std::string::npos);
}

}  // namespace
}  // namespace sluice::audit
