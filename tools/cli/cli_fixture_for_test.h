// For tests of whole commands: the real client, gRPC over a unix socket, the real server, and behind it a
// SessionManager that answers as told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "control/api/fake_sessions_for_test.h"
#include "tools/cli/app.h"

namespace sluice::cli {

struct Outcome {
  int exit_code = 0;
  std::string out;
  std::string err;
  api::Json json() const { return api::Json::parse(out, nullptr, false); }
};

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // What commands remember is this test's own.
    ::unsetenv("STATE_DIRECTORY");
    ::setenv("XDG_STATE_HOME", control_.directory.c_str(), 1);
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
  }

  Outcome run_in(const std::filesystem::path& directory, const std::vector<std::string>& arguments) const {
    std::ostringstream out, err;
    Environment environment{out, err};
    environment.working_directory = directory;
    environment.default_node = control_.directory;
    const int exit_code = run(arguments, environment);
    return {exit_code, out.str(), err.str()};
  }
  Outcome sluice(const std::vector<std::string>& arguments) const { return run_in("/w", arguments); }

  // What the next sessions look like.
  void sessions_are(api::Session::State state, ErrorCode code = ErrorCode::kOk,
                    const std::string& error = "") {
    control_.on_io([&] {
      api::Session& session = control_.sessions.prototype;
      session.set_state(state);
      session.set_bytes_total(100);
      session.set_error_code(static_cast<uint32_t>(code));
      session.set_error(error);
    });
  }

  service::FakeControl control_;
};

inline void expect_one_line_error(const Outcome& outcome, ErrorCode code) {
  EXPECT_EQ(outcome.exit_code, static_cast<int>(code)) << outcome.err;
  EXPECT_EQ(outcome.err.find("sluice: "), 0U) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

}  // namespace sluice::cli
