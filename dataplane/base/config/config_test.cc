// The schema of node.toml: what is accepted, what is refused, and in which words.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/config.h"

#include <gtest/gtest.h>

#include <fstream>

namespace sluice::config {
namespace {

Result<Node> parse_text(std::string_view text) { return parse(text, "/srv/node", "node.toml"); }

std::string problem_of(std::string_view text) {
  const auto node = parse_text(text);
  if (node) return "";
  EXPECT_EQ(node.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(node.error().message.find('\n'), std::string::npos) << "one line: " << node.error().message;
  return node.error().message;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr std::string_view kName = "[node]\nname = \"alpha\"\n";

std::string with_name(std::string_view rest) { return std::string(kName) + std::string(rest); }

TEST(Config, AFileWithOnlyTheNameKeepsEveryDefault) {
  const auto node = parse_text(kName);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->name, "alpha");
  EXPECT_EQ(node->listen, "0.0.0.0:7400");
  EXPECT_EQ(node->transfer.rate_bps, 10'000'000'000U);
  EXPECT_EQ(node->control_socket(), "/srv/node/run/control.sock");
}

TEST(Config, EverySectionIsRead) {
  const auto node = parse_text(R"(
[node]
name = "alpha"
[control]
listen = "[fd00::1]:7401"
sync_lag_bytes = "64MiB"
[transfer]
lanes = 4
crc = "crc32c"
rate = "2.5G"
chunk_bytes = 1400
[port]
device = "net_memif0,role=server,id=0,socket=/tmp/x.sock"
address4 = "10.77.0.1/24"
address6 = "fd77::1/64"
gateway4 = "10.77.0.254"
mtu = 1500
rate = 40_000_000_000
[dataplane]
workers = 2
cores = [3, 1]
poll = "busy"
extent_bytes = "256KiB"
[[export]]
name = "in"
path = "/srv/in"
mode = "w"
[[export]]
name = "out"
path = "/srv/out"
)");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->sync_lag_bytes, 64U << 20);
  EXPECT_EQ(node->transfer.rate_bps, 2'500'000'000U);
  EXPECT_EQ(node->transfer.chunk_bytes, 1400U);
  EXPECT_EQ(node->port_rate_bps, 40'000'000'000U);
  EXPECT_EQ(node->cores, (std::vector<int>{3, 1}));
  EXPECT_EQ(node->extent_bytes, 256U << 10);
  ASSERT_EQ(node->exports.size(), 2U);
  EXPECT_FALSE(node->exports[0].read);
  EXPECT_TRUE(node->exports[0].write);
  EXPECT_TRUE(node->exports[1].read);
  EXPECT_FALSE(node->exports[1].write);
}

TEST(Config, AnExportMayBeOpenToSomePeersOnly) {
  const auto exports = [](const std::string& peers) {
    return with_name("[[export]]\nname = \"x\"\npath = \"/x\"\n" + peers + "\nmode = \"rw\"\n");
  };
  const auto node = parse_text(exports(R"(peers = ["beta", "gamma:r"])"));
  ASSERT_TRUE(node) << node.error().message;
  const Export& one = node->exports[0];
  EXPECT_EQ(one.peers_text(), "beta, gamma:r");
  EXPECT_EQ(one.for_peer("beta").mode(), "rw");
  EXPECT_EQ(one.for_peer("gamma").mode(), "r");
  EXPECT_EQ(one.for_peer("bet").mode(), "");
  EXPECT_EQ(parse_text(exports("peers = []"))->exports[0].for_peer("beta").mode(), "");
  EXPECT_EQ(parse_text(exports(""))->exports[0].for_peer("beta").mode(), "rw");
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = "beta")")), "[[export]] peers: must be an array"));
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = ["beta", 3])")), "must be an array of names"));
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = ["Beta"])")), "must be the name of a peer"));
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = ["beta:"])")), "must be the name of a peer"));
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = ["beta:wr"])")), "must be the name of a peer"));
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = ["beta", "beta:r"])")), "beta is there twice"));
  EXPECT_TRUE(contains(problem_of(exports(R"(peers = ["beta:rwm"])")), "is more than mode = \"rw\""));
}

TEST(Config, TheStateMayLieElsewhere) {
  EXPECT_EQ(parse_text(kName)->journal(), "/srv/node/journal.sqlite");
  EXPECT_EQ(parse_text(kName)->audit_log(), "/srv/node/audit.ndjson");
  const auto node = parse_text(with_name("[control]\nstate_dir = \"/var/lib/sluice\"\ngroup = \"sluice\"\n"));
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->journal(), "/var/lib/sluice/journal.sqlite");
  EXPECT_EQ(node->audit_log(), "/var/lib/sluice/audit.ndjson");
  EXPECT_EQ(node->control_socket(), "/srv/node/run/control.sock");
  EXPECT_EQ(node->control_group, "sluice");
  EXPECT_EQ(node->dataplane_group, "");
  EXPECT_TRUE(
      contains(problem_of(with_name("[control]\nstate_dir = \"state\"\n")), "must be an absolute path"));
  EXPECT_EQ(parse_text(with_name("[dataplane]\ngroup = \"X.Y@z\"\n"))->dataplane_group, "X.Y@z");
  for (const std::string group : {"a b", "a:b", "../a", "a\\n"}) {
    EXPECT_TRUE(
        contains(problem_of(with_name("[dataplane]\ngroup = \"" + group + "\"\n")), "name of a group"))
        << group;
  }
}

TEST(Config, AnUnknownKeyNamesFileLineAndTheNearestKey) {
  EXPECT_EQ(problem_of("[node]\nname = \"a\"\n[transfer]\nlane = 2\n"),
            "node.toml:4: unknown key \"lane\" in [transfer]; the nearest known one is [transfer] lanes");
  EXPECT_TRUE(contains(problem_of(with_name("[control]\nmtu = 1500\n")), "[port] mtu"));
  EXPECT_TRUE(contains(problem_of(with_name("[dataplan]\nworkers = 1\n")), "[dataplane]"));
  EXPECT_TRUE(contains(problem_of("workers = 1\n[node]\nname = \"a\"\n"), "outside any section"));
}

TEST(Config, OfSeveralErrorsTheFirstInTheFileIsReported) {
  EXPECT_TRUE(
      contains(problem_of(with_name("[transfer]\nlanes = 99\n[control]\nbogus = 1\n")), "node.toml:4:"));
}

TEST(Config, ValuesOutOfRangeNameTheValueAndTheRange) {
  EXPECT_EQ(problem_of(with_name("[transfer]\nlanes = 99\n")),
            "node.toml:4: [transfer] lanes = 99: must be 1..16 lanes");
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\nlanes = -1\n")), "= -1: must be 1..16"));
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\nlanes = 1.5\n")), "must be a whole number"));
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\ncrc = \"md5\"\n")), "one of \"crc64\", \"crc32c\""));
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\ncrc = \"crc64 crc32c\"\n")), "must be one of"));
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\nrate = \"fast\"\n")), "must be a rate"));
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\nchunk_bytes = 100\n")), "256..32768 in steps of 4"));
  EXPECT_TRUE(contains(problem_of(with_name("[dataplane]\nextent_bytes = \"192KiB\"\n")), "power of two"));
  EXPECT_TRUE(contains(problem_of("[node]\nname = \"Alpha\"\n"), "must be 1 to 63 of"));
  EXPECT_TRUE(contains(problem_of("[node]\nname = 3\n"), "must be a string"));
}

TEST(Config, ANodeMayListenToNobody) {
  EXPECT_TRUE(parse_text(with_name("[control]\nlisten = \"none\"\n"))->calls_only());
  EXPECT_FALSE(parse_text(with_name(""))->calls_only());
  EXPECT_TRUE(
      contains(problem_of(with_name("[control]\nlisten = \"nobody\"\n")), "\"[v6]:port\" or \"none\""));
}

TEST(Config, AComponentLogsAsItsKeySaysOrAsAllDo) {
  const auto node = parse_text(with_name("[control]\nlog_level = \"warn\"\n[log]\npeer = \"off\"\n"));
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->log_level_of("peer"), "off");
  EXPECT_EQ(node->log_level_of("session"), "warn");
}

TEST(Config, AddressesAreCheckedByFamily) {
  for (const char* bad : {"10.0.0.1", "10.0.0.1/33", "fd77::1/64", "0.0.0.0/0", "224.0.0.1/4", "10.0.0.1/"}) {
    EXPECT_TRUE(contains(problem_of(with_name("[port]\naddress4 = \"" + std::string(bad) + "\"\n")), "IPv4"))
        << bad;
  }
  for (const char* bad : {"fd77::1", "fd77::1/129", "10.0.0.1/24", "ff02::1/64", "::/64"}) {
    EXPECT_TRUE(contains(problem_of(with_name("[port]\naddress6 = \"" + std::string(bad) + "\"\n")), "IPv6"))
        << bad;
  }
}

TEST(Config, NeighboursAreAddressesWithLinkAddresses) {
  const auto problem = [](const std::string& value) {
    return problem_of(with_name("[port]\nneighbours = \"" + value + "\"\n"));
  };
  std::string seventeen;
  for (int i = 2; i < 19; ++i) seventeen += "10.0.0." + std::to_string(i) + "=02:00:00:00:00:02 ";
  for (const std::string& bad :
       {std::string("10.0.0.2"), std::string("10.0.0.2=02:00:00:00:00"),
        std::string("10.0.0.2=02:00:00:00:00:2"), std::string("10.0.0.2=03:00:00:00:00:02"),
        std::string("10.0.0.2=00:00:00:00:00:00"), std::string("10.0.0=02:00:00:00:00:02"),
        std::string("fd77::g=02:00:00:00:00:02"),
        std::string("10.0.0.2=02:00:00:00:00:02,10.0.0.3=02:00:00:00:00:03"),
        std::string("10.0.0.2=02:00:00:00:00:02 10.0.0.2=02:00:00:00:00:03"), seventeen}) {
    EXPECT_TRUE(contains(problem(bad), "ADDRESS=MAC")) << bad;
  }
  const auto good = parse_neighbours(" 10.0.0.2=02:00:00:00:00:0a  fd77::2=02:AB:00:00:00:03 ");
  ASSERT_TRUE(good);
  ASSERT_EQ(good->size(), 2U);
  EXPECT_FALSE((*good)[0].ip6);
  EXPECT_EQ((*good)[0].ip[3], 2);
  EXPECT_EQ((*good)[0].mac[5], 0x0a);
  EXPECT_TRUE((*good)[1].ip6);
  EXPECT_EQ((*good)[1].mac[1], 0xab);
}

TEST(Config, KeysThatDoNotFitTogetherAreRefused) {
  EXPECT_TRUE(contains(problem_of(with_name("[dataplane]\nworkers = 2\ncores = [1]\n")), "one per worker"));
  EXPECT_TRUE(contains(problem_of(with_name("[dataplane]\ncores = [1, 1]\n")), "listed twice"));
  EXPECT_TRUE(contains(problem_of(with_name("[dataplane]\nextents_per_worker = 4096\n")), "memory_mib"));
  EXPECT_TRUE(contains(problem_of(with_name("[port]\ndevice = \"net_tap0\"\n")), "no address"));
  EXPECT_TRUE(contains(problem_of(with_name("[port]\ngateway4 = \"10.0.0.1\"\n")), "without address4"));
  EXPECT_TRUE(contains(problem_of(with_name("[port]\naddress4 = \"10.0.0.2/24\"\ngateway4 = \"10.0.0.1\"\n")),
                       "routes of the host"));
  EXPECT_TRUE(contains(problem_of(with_name("[port]\ndevice = \"\"\n")), "udp"));
  EXPECT_TRUE(contains(problem_of(with_name("[transfer]\npartition_bytes = 1048577\n")), "multiple"));
  EXPECT_TRUE(contains(problem_of(with_name("[control]\nusers_map_file = \"/etc/sluice/users.map\"\n")),
                       "users_map_file without users_group"));
  EXPECT_TRUE(contains(
      problem_of(with_name("[control]\nusers_group = \"u\"\nusers_map_file = \"users.map\"\n")), "absolute"));
}

TEST(Config, AFallbackIsForDevicesThatCanVanish) {
  const auto with_device = [](const std::string& device, const std::string& rest) {
    return with_name("[port]\naddress4 = \"10.0.0.2/24\"\ndevice = \"" + device + "\"\n" + rest);
  };
  const std::string fallback = "fallback = \"udp\"\nfallback_address4 = \"10.1.0.2/24\"\n";
  for (const char* device :
       {"0000:01:00.0", "01:00.0,arg=1", "net_af_packet0,iface=d", "net_af_xdp0,iface=d"}) {
    const auto node = parse_text(with_device(device, fallback));
    ASSERT_TRUE(node) << node.error().message;
    EXPECT_EQ(node->fallback, "udp");
    EXPECT_EQ(node->fallback_return_s, 30U);
  }
  for (const char* device : {"udp", "net_memif0,role=server", "net_tap0", "net_vhost0,iface=/x"})
    EXPECT_TRUE(contains(problem_of(with_device(device, fallback)), "can vanish")) << device;
  EXPECT_TRUE(contains(problem_of(with_device("0000:01:00.0", "fallback_address6 = \"fd00::1/64\"\n")),
                       "fallback = \"udp\""));
}

TEST(Config, ExportsNeedANameAndAnAbsolutePathAndDifferInName) {
  EXPECT_TRUE(
      contains(problem_of(with_name("[[export]]\nname = \"a\"\n")), "node.toml:3: [[export]] without path"));
  EXPECT_TRUE(contains(problem_of(with_name("[[export]]\nname = \"a\"\npath = \"data\"\n")), "absolute"));
  EXPECT_TRUE(contains(problem_of(with_name("[[export]]\nname = \"a\"\npath = \"/a/../b\"\n")), "\"..\""));
  EXPECT_TRUE(contains(problem_of(with_name("[export]\nname = \"a\"\npath = \"/a\"\n")), "[[export]]"));
  EXPECT_TRUE(contains(problem_of(with_name("[[export]]\nname = \"a\"\npath = \"/a\"\n"
                                            "[[export]]\nname = \"a\"\npath = \"/b\"\n")),
                       "is there twice"));
  EXPECT_TRUE(contains(problem_of(with_name("[[export]]\nname = \"a\"\npath = \"/a\"\n"
                                            "[[export]]\nname = \"b\"\npath = \"//a/./\"\n")),
                       "is exported twice"));
}

TEST(Config, AnExportSaysWhetherItsFilesPassThePageCache) {
  const std::string text = "[[export]]\nname = \"a\"\npath = \"/a\"\n";
  EXPECT_TRUE(parse_text(with_name(text))->exports[0].direct);
  EXPECT_FALSE(parse_text(with_name(text + "direct = \"no\"\n"))->exports[0].direct);
  EXPECT_TRUE(parse_text(with_name(text + "direct = \"yes\"\n"))->exports[0].direct);
  EXPECT_TRUE(contains(problem_of(with_name(text + "direct = \"sometimes\"\n")), "direct"));
}

TEST(Config, AMissingNameAndBrokenTomlAreRefused) {
  EXPECT_EQ(problem_of("[control]\nlog_level = \"info\"\n"), "node.toml: [node] name is missing; add it");
  EXPECT_TRUE(contains(problem_of("[node\nname = 1\n"), "node.toml:1: not valid TOML"));
  EXPECT_TRUE(
      contains(problem_of("\n[.node]\nname = \"a\"\n"), "node.toml:2: not valid TOML: a section's name"));
  EXPECT_TRUE(contains(problem_of("[node]\nname = \"a\" \xc3\xa9\n"),
                       "node.toml:2: not valid TOML: outside comments"));
  EXPECT_TRUE(contains(problem_of("[dataplane]\n memory_mib = 99999999999999999999\n"),
                       "node.toml:2: not valid TOML: memory_mib: larger than any number"));
  EXPECT_TRUE(contains(problem_of("[node]\nname = \"\"\"a\"\"\"\n"), "several lines"));
  EXPECT_TRUE(contains(problem_of("[node]\rname = \"a\""), "control characters"));
  EXPECT_TRUE(
      contains(problem_of("node = { name = \"a\" }\n"), "node.toml:1: not valid TOML: tables in braces"));
}

TEST(Config, AnyCharacterMayStandInCommentsAndEscapedInStrings) {
  const auto node = parse_text(
      "# \xc3\xa9 [.x] {} '\r\n [node] # \"\r\n\"name\" = \"a\"\n[[ export ]]\nname = 'e'\npath = "
      "\"/srv/\\u00e9\\\"#\" # \"\"\"\n");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->exports[0].path, "/srv/\xc3\xa9\"#");
}

TEST(Config, AMissingFileNamesItAndTheRemedy) {
  const auto node = load("/nonexistent/node");
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().message,
            "/nonexistent/node/node.toml: No such file or directory; create a node with: sluice node init");
}

}  // namespace
}  // namespace sluice::config
