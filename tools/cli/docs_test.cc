// docs/OPERATING.md says what the code does.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "tools/cli/app.h"
#include "tools/cli/run_file.h"

namespace sluice::cli {
namespace {

std::string document() {
  const std::ifstream file(SLUICE_SOURCE_DIR "/docs/OPERATING.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(OperatingDocument, ListsEveryExitCodeByNumberAndName) {
  const std::string text = document();
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    const std::string row = "| " + std::to_string(code) + " | `" +
                            std::string(error_code_name(static_cast<ErrorCode>(code))) + "` |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
  // A code that is added extends the table.
  EXPECT_EQ(error_code_name(static_cast<ErrorCode>(static_cast<int>(kErrorCodeLast) + 1)), "unknown");
}

TEST(OperatingDocument, HoldsTheConfigurationReferenceWordForWord) {
  const std::string text = document();
  EXPECT_NE(text.find("<!-- config-reference-begin -->\n" + config::reference_markdown() +
                      "<!-- config-reference-end -->"),
            std::string::npos)
      << "fill it with 'sluice node reference'";
}

TEST(OperatingDocument, HoldsTheReferenceOfTransferFilesWordForWord) {
  EXPECT_NE(
      document().find("<!-- run-reference-begin -->\n" + run_file_reference() + "<!-- run-reference-end -->"),
      std::string::npos)
      << "fill it with 'sluice run --reference'";
}

TEST(OperatingDocument, NamesEveryOptionOfEveryCommand) {
  const std::string text = document();
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{},
                                             {"send"},
                                             {"get"},
                                             {"run"},
                                             {"session", "list"},
                                             {"session", "show"},
                                             {"session", "wait"},
                                             {"session", "watch"},
                                             {"session", "events"},
                                             {"session", "log"},
                                             {"session", "log-level"},
                                             {"session", "cancel"},
                                             {"receipt"},
                                             {"counters"},
                                             {"doctor"},
                                             {"ls"},
                                             {"stat"},
                                             {"mkdir"},
                                             {"mv"},
                                             {"rm"},
                                             {"node", "setup"},
                                             {"node", "init"},
                                             {"node", "trust"},
                                             {"node", "distrust"},
                                             {"node", "show"},
                                             {"node", "reference"},
                                             {"node", "topology"},
                                             {"node", "log-level"},
                                             {"completion"}}) {
    std::ostringstream out, err;
    Environment environment{out, err};
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    ASSERT_EQ(run(arguments, environment), 0);
    std::istringstream help(out.str());
    for (std::string word; help >> word;) {
      const size_t dashes = word.find("--");
      if (dashes == std::string::npos || dashes + 2 == word.size()) continue;
      const std::string option = word.substr(dashes, word.find_first_of(",=:; )", dashes) - dashes);
      EXPECT_NE(text.find(option), std::string::npos) << option;
    }
  }
}

}  // namespace
}  // namespace sluice::cli
