// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/json.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(Json, ASessionCarriesEveryFieldOfTheApi) {
  api::Session session;
  session.add_files();
  const Json object = session_json(session);
  EXPECT_EQ(object["schema"], "sluice.session.v1");
  const auto* fields = api::Session::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    EXPECT_TRUE(object.contains(fields->field(i)->name())) << fields->field(i)->name();
  }
  EXPECT_EQ(object.size(), static_cast<size_t>(fields->field_count()) + 1);
  EXPECT_EQ(object["files"][0].size(), static_cast<size_t>(api::FileProgress::descriptor()->field_count()));
}

TEST(Json, ValuesKeepTheirTypes) {
  api::Session session;
  session.set_state(api::Session::SUCCEEDED);
  session.set_bytes_total(UINT64_MAX);
  session.add_files()->set_size(5);
  const Json object = Json::parse(to_line(session_json(session)));
  EXPECT_EQ(object["state"], "succeeded");
  EXPECT_EQ(object["bytes_total"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(object["files"][0]["size_bytes"], 5);
}

TEST(Json, AnErrorHasCodeNameAndMessage) {
  EXPECT_EQ(to_line(error_json({ErrorCode::kNoSpace, "full"})),
            "{\"schema\":\"sluice.error.v1\",\"code\":10,\"name\":\"no_space\",\"message\":\"full\"}\n");
}

TEST(Json, IsOneLineWhateverTheTextHolds) {
  const std::string line = to_line(error_json({ErrorCode::kInternal, "a\nb\xff"}));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(Json::accept(line));
}

}  // namespace
}  // namespace sluice::cli
