// SPDX-License-Identifier: Apache-2.0
#include "control/proto/option_fields.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace sluice::api {
namespace {

using google::protobuf::FieldDescriptor;

// Not options that somebody chooses: `top` goes with a path, the others are lists.
const std::set<std::string> kNoOptions = {"rules", "names", "local_files", "top",
                                          "lease", "part",  "expected"};

TEST(OptionFields, EachOptionHasItsFieldInTheApiAndTheApiHasNoOthers) {
  std::set<std::string> fields;
  for (int i = 0; i < TransferOptions::descriptor()->field_count(); ++i)
    fields.insert(TransferOptions::descriptor()->field(i)->name());
  for (const std::string& name : kNoOptions) EXPECT_EQ(fields.erase(name), 1U) << name;
  for (const options::Option& option : options::all()) {
    if (option.of == options::Of::kCommand) continue;
    EXPECT_EQ(fields.erase(std::string(option.name)), 1U)
        << option.name << " has no field in TransferOptions";
  }
  for (const std::string& name : fields)
    ADD_FAILURE() << name << ": no option; add a row to dataplane/base/options/options.def";
}

TEST(OptionFields, EveryValueComesBack) {
  for (const options::Option& option : options::all()) {
    if (option.of != options::Of::kTransfer) continue;
    SCOPED_TRACE(option.name);
    TransferOptions message;
    const FieldDescriptor& field = *option_field(option, message);
    EXPECT_FALSE(*option_in(option, message, field)) << "nothing was said";
    const auto choices = static_cast<int64_t>(option.choices.size());
    for (int64_t number = 1; number <= (choices == 0 ? 3 : choices - 1); ++number) {
      set_option(option, number, &message, field);
      const auto back = option_in(option, message, field);
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(*back, number);
    }
    // The node's own value has to be one that a caller can change, also to 0.
    if (option.kind != options::Kind::kChoice && option.value_in(options::Options()) != 0 &&
        option.least <= 0) {
      EXPECT_TRUE(field.has_presence()) << "make the field `optional`";
    }
  }
}

TEST(OptionFields, AWishHasWhatWasSaidAndNothingElse) {
  TransferOptions message;
  message.set_lanes(3);
  message.set_mode("cubic");
  message.set_expected_loss(0.025);
  message.set_overwrite(true);
  const auto wish = wish_of(message);
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->lanes, 3U);
  EXPECT_EQ(wish->mode, options::RateMode::kCubic);
  EXPECT_EQ(wish->expected_loss->ppm, 25'000U);
  EXPECT_EQ(wish->overwrite, true);
  EXPECT_FALSE(wish->crc || wish->rate_bps || wish->verify || wish->ip);
}

TEST(OptionFields, WhatAnOptionCannotBeIsRefusedAndNamed) {
  const auto error_of = [](auto change) {
    TransferOptions message;
    change(message);
    const auto wish = wish_of(message);
    EXPECT_FALSE(wish);
    return wish ? Error{} : wish.error();
  };
  const Error crc = error_of([](TransferOptions& of) { of.set_crc("md5"); });
  EXPECT_EQ(crc.code, ErrorCode::kUsage);
  EXPECT_EQ(crc.message, "crc = \"md5\": use none, crc32c, crc64 or read");
  EXPECT_NE(error_of([](TransferOptions& of) { of.set_protection("rot13"); }).message.find("rot13"),
            std::string::npos);
  EXPECT_NE(error_of([](TransferOptions& of) { of.set_ip("5"); }).message.find("4 or 6"), std::string::npos);
  EXPECT_NE(error_of([](TransferOptions& of) { of.set_deadline_policy("panic"); }).message.find("panic"),
            std::string::npos);
  for (const double loss : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(error_of([loss](TransferOptions& of) { of.set_expected_loss(loss); }).code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace sluice::api
