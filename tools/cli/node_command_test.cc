// sluice node: nodes are made, trust each other, and are shown.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "dataplane/base/config/config.h"
#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

class NodeCommandTest : public CliTest {
 protected:
  Outcome init(const std::string& name) const {
    std::filesystem::create_directory(control_.directory / "data");
    return run_in(control_.directory,
                  {"node", "init", name, "--name", name, "--device", "net_memif0", "--address", "10.0.0.1/24",
                   "--core", "1", "--core", "2", "--export", "data=data:rw"});
  }
};

TEST_F(NodeCommandTest, InitMakesANodeThatLoadsAndRefusesToMakeItAgain) {
  const Outcome made = init("a");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto node = config::load(control_.directory / "a");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->name, "a");
  EXPECT_EQ(node->address4, "10.0.0.1/24");
  EXPECT_EQ(node->cores, (std::vector<int>{1, 2}));
  EXPECT_EQ(node->workers, 2U);
  EXPECT_EQ(node->exports[0].path, control_.directory / "data");
  EXPECT_TRUE(node->exports[0].write);
  expect_one_line_error(init("a"), ErrorCode::kConfiguration);
  EXPECT_TRUE(config::load(control_.directory / "a"));
}

TEST_F(NodeCommandTest, InitWithAWrongOptionLeavesNothing) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--name", "Ä"},
                                                                                    {"--address", "10.0.0.1"},
                                                                                    {"--export", "x"},
                                                                                    {"--rate", "fast"},
                                                                                    {"--mtu", "1"}}) {
    std::vector<std::string> arguments{"node", "init", "n"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_one_line_error(run_in(control_.directory, arguments), ErrorCode::kUsage);
    EXPECT_FALSE(std::filesystem::exists(control_.directory / "n"));
  }
  expect_one_line_error(run_in(control_.directory, {"node", "init", "n", "--export", "x=/no/such"}),
                        ErrorCode::kConfiguration);
}

TEST_F(NodeCommandTest, NoExportMayHoldTheNodeItself) {
  const Outcome refused = run_in(control_.directory, {"node", "init", "n", "--export", "home=."});
  expect_one_line_error(refused, ErrorCode::kConfiguration);
  EXPECT_NE(refused.err.find("private key"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(control_.directory / "n"));
}

TEST_F(NodeCommandTest, NobodyElseHasTheNodesOwnName) {
  init("a");
  init("b");
  std::ofstream(control_.directory / "b.pem")
      << run_in(control_.directory, {"node", "show", "--node", "b", "--certificate"}).out;
  const Outcome refused = run_in(control_.directory, {"--node", "a", "node", "trust", "a", "b.pem"});
  expect_one_line_error(refused, ErrorCode::kUsage);
  EXPECT_NE(refused.err.find("this node's own name"), std::string::npos) << refused.err;
}

TEST_F(NodeCommandTest, TwoNodesTrustEachOtherByTheirCertificates) {
  init("a");
  init("b");
  const std::string certificate =
      run_in(control_.directory, {"node", "show", "--node", "b", "--certificate"}).out;
  EXPECT_EQ(certificate.find("-----BEGIN CERTIFICATE-----"), 0U);
  std::ofstream(control_.directory / "b.pem") << certificate;
  const Outcome trusted = run_in(
      control_.directory, {"node", "trust", "--node", "a", "b", "b.pem", "--address", "10.0.0.2:7400"});
  EXPECT_EQ(trusted.exit_code, 0) << trusted.err;
  const api::Json shown = run_in(control_.directory, {"node", "show", "--node", "a", "--json"}).json();
  EXPECT_EQ(shown["peers"][0]["name"], "b");
  EXPECT_EQ(shown["peers"][0]["address"], "10.0.0.2:7400");
  EXPECT_EQ(shown["peers"][0]["fingerprint"],
            run_in(control_.directory, {"node", "show", "--node", "b", "--json"}).json()["fingerprint"]);
  EXPECT_TRUE(shown["live"].is_null());
}

TEST_F(NodeCommandTest, APeerThatMovesKeepsItsPin) {
  init("a");
  init("b");
  std::ofstream(control_.directory / "b.pem")
      << run_in(control_.directory, {"node", "show", "--node", "b", "--certificate"}).out;
  const std::vector<std::string> moves = {"node", "trust", "--node", "a", "b", "--address", "10.0.0.9:7401"};
  const Outcome unknown = run_in(control_.directory, moves);
  expect_one_line_error(unknown, ErrorCode::kUsage);
  EXPECT_NE(unknown.err.find("CERT.pem is missing"), std::string::npos) << unknown.err;
  const api::Json before = run_in(control_.directory, {"node", "trust", "--node", "a", "--json", "b", "b.pem",
                                                       "--address", "10.0.0.2:7400"})
                               .json();
  EXPECT_EQ(run_in(control_.directory, moves).out, "b listens at 10.0.0.9:7401\n");
  const api::Json shown = run_in(control_.directory, {"node", "show", "--node", "a", "--json"}).json();
  EXPECT_EQ(shown["peers"][0]["address"], "10.0.0.9:7401");
  EXPECT_EQ(shown["peers"][0]["fingerprint"], before["fingerprint"]);
}

TEST_F(NodeCommandTest, TrustRefusesWhatIsNoCertificateAndReservedNames) {
  init("a");
  std::ofstream(control_.directory / "junk") << "hello\n";
  for (const char* file : {"junk", "missing.pem"})
    expect_one_line_error(run_in(control_.directory, {"node", "trust", "--node", "a", "b", file}),
                          ErrorCode::kConfiguration);
  expect_one_line_error(run_in(control_.directory, {"node", "trust", "--node", "a", "memory", "junk"}),
                        ErrorCode::kUsage);
  expect_one_line_error(
      run_in(control_.directory, {"node", "trust", "--node", "a", "b", "junk", "--address", "nowhere"}),
      ErrorCode::kUsage);
}

TEST_F(NodeCommandTest, ShowTellsWhatRuns) {
  init("a");
  std::filesystem::remove_all(control_.directory / "a/run");
  std::filesystem::create_directory_symlink(control_.directory / "run", control_.directory / "a/run");
  control_.on_io([&] {
    control_.sessions.node_reply.set_dataplane_attached(true);
    control_.sessions.node_reply.set_device("net_memif");
    control_.sessions.node_reply.set_workers(2);
    control_.sessions.node_reply.set_crc_variant("avx512");
    control_.sessions.node_reply.set_link("down");
    control_.sessions.node_reply.mutable_dataplane_sandbox()->set_text("system calls, files, TCP");
    control_.sessions.node_reply.mutable_dataplane_sandbox()->set_refused_calls(2);
  });
  const Outcome text = run_in(control_.directory, {"node", "show", "--node", "a"});
  EXPECT_NE(text.out.find("up to 0 bytes, CRC by avx512"), std::string::npos) << text.out << text.err;
  EXPECT_NE(text.out.find("net_memif (link down), 2 workers"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("dataplane: system calls, files, TCP; 2 calls not allowed, see its log\n"),
            std::string::npos)
      << text.out;
  const api::Json live = run_in(control_.directory, {"node", "show", "--node", "a", "--json"}).json()["live"];
  EXPECT_EQ(std::pair(live["workers"], live["crc_variant"]), std::pair(api::Json(2), api::Json("avx512")));
  EXPECT_EQ(live["dataplane_sandbox"]["refused_calls"], 2);
  EXPECT_TRUE(live["control_sandbox"].is_null()) << "a control of before";
}

TEST_F(NodeCommandTest, ShowOfADirectoryThatIsNoNodeNamesTheRemedy) {
  expect_one_line_error(sluice({"node", "show", "--node", "/no/such"}), ErrorCode::kConfiguration);
}

}  // namespace
}  // namespace sluice::cli
