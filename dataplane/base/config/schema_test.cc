// The schema of node.toml against what is made of it: the fields, the template, the reference.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

#include "dataplane/base/config/config.h"

namespace sluice::config {
namespace {

Result<Node> of_template(const std::string& text) { return parse(text, "/srv/node", "node.toml"); }

bool shows(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Schema, TheRangesOfTheSchemaFitTheFieldsAndHoldTheDefaults) {
  const Node defaults;
  for (const Key& key : schema()) {
    SCOPED_TRACE(std::string(key.section) + "." + std::string(key.name));
    EXPECT_FALSE(key.meaning.empty());
    uint64_t value = 0;
    uint64_t field_max = 0;
    if (const auto* f = std::get_if<uint16_t Node::*>(&key.field)) {
      value = defaults.*(*f);
      field_max = std::numeric_limits<uint16_t>::max();
    } else if (const auto* g = std::get_if<uint32_t Node::*>(&key.field)) {
      value = defaults.*(*g);
      field_max = std::numeric_limits<uint32_t>::max();
    } else if (const auto* h = std::get_if<uint64_t Node::*>(&key.field)) {
      value = defaults.*(*h);
      field_max = std::numeric_limits<uint64_t>::max();
    } else {
      continue;
    }
    EXPECT_LE(key.max, field_max);
    EXPECT_GE(value, key.min);
    EXPECT_LE(value, key.max);
  }
}

TEST(Schema, TheTemplateIsAccepted) {
  TemplateOptions options;
  options.name = "alpha";
  const auto plain = of_template(make_template(options));
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->listen, Node{}.listen);

  options.listen = "127.0.0.1:7411";
  options.device = "net_memif0,role=server";
  options.address4 = "10.77.0.1/24";
  options.mtu = 1500;
  options.memory = "no-huge";
  options.workers = 2;
  options.cores = {0, 1};
  options.rate_bps = 2'500'000'000;
  options.exports = {
      {.name = "data", .path = "/srv/\"d\xc3\xa9\xf0\x9f\x8c\x8a\"\\", .read = true, .write = true}};
  const auto node = of_template(make_template(options));
  ASSERT_TRUE(node) << node.error().message << "\n" << make_template(options);
  EXPECT_EQ(node->listen, options.listen);
  EXPECT_EQ(node->device, options.device);
  EXPECT_EQ(node->address4, options.address4);
  EXPECT_EQ(node->mtu, 1500U);
  EXPECT_EQ(node->memory, "no-huge");
  EXPECT_EQ(node->cores, options.cores);
  EXPECT_EQ(node->transfer.rate_bps, options.rate_bps);
  ASSERT_EQ(node->exports.size(), 1U);
  EXPECT_EQ(node->exports[0].path, options.exports[0].path);
  EXPECT_TRUE(node->exports[0].write);
}

// Every commented-out default of the template, made live, must be accepted as well.
TEST(Schema, TheDefaultsShownByTheTemplateAreValid) {
  TemplateOptions options;
  options.name = "alpha";
  std::istringstream lines(make_template(options));
  std::string live;
  for (std::string line; std::getline(lines, line) && !shows(line, "Directories whose files");) {
    const bool commented_key =
        line.rfind("# ", 0) == 0 && shows(line, " = ") && line.find(' ', 2) == line.find(" = ");
    live += (commented_key ? line.substr(2) : line) + "\n";
  }
  const auto node = of_template(live);
  ASSERT_TRUE(node) << node.error().message << "\n" << live;
  EXPECT_EQ(node->partition_bytes, Node{}.partition_bytes);
  EXPECT_EQ(node->sync_lag_bytes, Node{}.sync_lag_bytes);
}

TEST(Schema, TheReferenceListsEveryKeyOnce) {
  const std::string table = reference_markdown();
  EXPECT_EQ(static_cast<size_t>(std::count(table.begin(), table.end(), '\n')), schema().size() + 2);
  for (const Key& key : schema())
    EXPECT_TRUE(shows(table, "| `" + std::string(key.name) + "` |")) << key.name;
}

TEST(Schema, ReferenceMdContainsTheReferenceWordForWord) {
  const std::string file = std::string(SLUICE_SOURCE_DIR) + "/docs/REFERENCE.md";
  std::ifstream in(file);
  if (!in) GTEST_SKIP() << file << " is not there";
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string begin = "<!-- config-reference-begin -->";
  const std::string end = "<!-- config-reference-end -->";
  const size_t from = text.find(begin);
  const size_t to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to)
      << file << " lacks the markers " << begin << " and " << end;
  std::string table = text.substr(from + begin.size(), to - from - begin.size());
  table.erase(0, table.find_first_not_of('\n'));
  table.erase(table.find_last_not_of('\n') + 1);
  EXPECT_EQ(table + "\n", reference_markdown())
      << "paste the output of `sluice node reference` between the markers";
}

}  // namespace
}  // namespace sluice::config
