// docs/REFERENCE.md and docs/RUNBOOK.md say what the code does.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>

#include "dataplane/base/config/config.h"
#include "dataplane/base/daemon/daemon.h"
#include "dataplane/base/error.h"
#include "dataplane/base/options/options.h"
#include "tools/cli/app.h"
#include "tools/cli/run_file.h"

namespace sluice::cli {
namespace {

std::string document(const std::string& name) {
  const std::ifstream file(SLUICE_SOURCE_DIR "/docs/" + name + ".md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Runbook, ListsEveryExitCodeByNumberAndName) {
  const std::string text = document("RUNBOOK");
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    const std::string row = "| " + std::to_string(code) + " | `" +
                            std::string(error_code_name(static_cast<ErrorCode>(code))) + "` |";
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
  // A code that is added extends the table.
  EXPECT_EQ(error_code_name(static_cast<ErrorCode>(static_cast<int>(kErrorCodeLast) + 1)), "unknown");
}

TEST(Reference, HoldsTheConfigurationReferenceWordForWord) {
  const std::string text = document("REFERENCE");
  EXPECT_NE(text.find("<!-- config-reference-begin -->\n" + config::reference_markdown() +
                      "<!-- config-reference-end -->"),
            std::string::npos)
      << "fill it with 'sluice node reference'";
}

TEST(Reference, HoldsTheOptionsOfATransferWordForWord) {
  const std::string text = document("REFERENCE");
  EXPECT_NE(text.find("<!-- options-reference-begin -->\n" + options::reference_markdown() +
                      "<!-- options-reference-end -->"),
            std::string::npos)
      << "fill it with 'sluice node reference --options'";
}

TEST(Reference, HoldsTheReferenceOfTransferFilesWordForWord) {
  const std::string text = document("REFERENCE");
  EXPECT_NE(text.find("<!-- run-reference-begin -->\n" + run_file_reference() + "<!-- run-reference-end -->"),
            std::string::npos)
      << "fill it with 'sluice run --reference'";
}

// As a word of its own: "--rate" is not named by "--rate-limit".
bool names(const std::string& text, const std::string& word) {
  constexpr std::string_view kOfWords = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || kOfWords.find(text[at - 1]) == std::string_view::npos;
    const size_t end = at + word.size();
    if (begins && (end == text.size() || kOfWords.find(text[end]) == std::string_view::npos)) return true;
  }
  return false;
}

void expect_named(const CLI::App& app, const std::string& command, const std::string& text) {
  EXPECT_TRUE(names(text, command)) << command;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      EXPECT_TRUE(names(text, "--" + name)) << command << " --" << name;
    for (const std::string& name : option->get_snames())
      EXPECT_TRUE(names(text, "-" + name)) << command << " -" << name;
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; }))
    expect_named(*below, command + " " + below->get_name(), text);
}

TEST(Reference, NamesEveryCommandAndEveryOption) {
  std::ostringstream out, err;
  Environment environment{out, err};
  Context context{environment};
  CLI::App app("", "sluice");
  add_everything(app, context);
  expect_named(app, "sluice", document("REFERENCE"));
}

TEST(Reference, NamesEveryOptionOfTheDaemons) {
  for (const daemon::Program& program : {daemon::kControl, daemon::kDataplane, daemon::kUsers}) {
    CLI::App app(program.about, program.name);
    daemon::Options options;
    daemon::add_options(app, program, options);
    expect_named(app, program.name, document("REFERENCE"));
  }
}

}  // namespace
}  // namespace sluice::cli
