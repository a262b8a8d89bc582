// SPDX-License-Identifier: Apache-2.0
#include "control/client/json.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

namespace sluice::api {
namespace {

TEST(Json, ASessionCarriesEveryFieldOfTheApi) {
  Session session;
  session.add_files();
  const Json object = session_json(session);
  EXPECT_EQ(object["schema"], "sluice.session.v1");
  const auto* fields = Session::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    EXPECT_TRUE(object.contains(fields->field(i)->name())) << fields->field(i)->name();
  }
  EXPECT_EQ(object.size(), static_cast<size_t>(fields->field_count()) + 1);
  EXPECT_EQ(object["files"][0].size(), static_cast<size_t>(FileProgress::descriptor()->field_count()));
}

TEST(Json, ValuesKeepTheirTypes) {
  Session session;
  session.set_state(Session::SUCCEEDED);
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

TEST(Json, ANameThatIsNotUtf8HasItsBytesBesides) {
  NameEntry entry;
  entry.set_error_code(static_cast<uint32_t>(ErrorCode::kSourceUnreadable));
  const Json odd = name_json(entry, "a\xff");
  EXPECT_EQ(odd["path_bytes"], "61ff");
  EXPECT_EQ(odd["error_name"], "source_unreadable");
  EXPECT_FALSE(name_json(entry, "a").contains("path_bytes"));
  EXPECT_EQ(to_line(preview_json("a\xff", NameEntry::FILE, 5)),
            "{\"path\":\"a\uFFFD\",\"type\":\"file\",\"path_bytes\":\"61ff\",\"size_bytes\":5}\n");
  EXPECT_EQ(to_line(preview_json("d", NameEntry::DIRECTORY, 0)), "{\"path\":\"d\",\"type\":\"directory\"}\n");
}

TEST(Json, ARecordOfALogHasWhatItsKindHas) {
  LogRecord record;
  record.set_kind("retransmission");
  record.set_length(512);
  EXPECT_EQ(log_json("s1", record)["schema"], "sluice.log.v1");
  EXPECT_EQ(log_json("s1", record)["length_bytes"], 512);
  EXPECT_FALSE(log_json("s1", record).contains("object"));
}

TEST(Json, IsOneLineWhateverTheTextHolds) {
  const std::string line = to_line(error_json({ErrorCode::kInternal, "a\nb\xff"}));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(Json::accept(line));
}

}  // namespace
}  // namespace sluice::api
