// What those who may only look see, and what they are refused.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/readers.h"

#include <gtest/gtest.h>

namespace sluice::service {
namespace {

TEST(Readers, SeeNoNamesOfFiles) {
  api::Session session;
  session.set_id("1f3a");
  session.set_peer("beta");
  session.set_bytes_done(7);
  session.set_error_name("storage");
  session.set_error("/srv/data/secret.h5: Input/output error");
  session.set_waiting_for("reading /srv/data/secret.h5 again");
  session.add_legs()->set_waiting_for("reading /srv/data/secret.h5 again");
  api::FileProgress* const file = session.add_files();
  file->set_source("/srv/data/secret.h5");
  file->set_destination("data/secret.h5");
  file->set_digest_source("abcd");
  file->set_size(9);
  session.mutable_names()->set_failed(1);
  session.mutable_names()->add_missing()->set_path("secret.h5");
  session.add_legs()->set_error("/data/secret.h5: does not exist");
  hide_names(&session);
  EXPECT_EQ(session.SerializeAsString().find("secret"), std::string::npos) << session.DebugString();
  EXPECT_EQ(session.SerializeAsString().find("abcd"), std::string::npos);
  EXPECT_EQ(session.error(), "storage");
  EXPECT_EQ(session.files(0).size(), 9U);
  EXPECT_EQ(session.peer(), "beta");
  EXPECT_EQ(session.names().failed(), 1U);
  session.set_waiting_for("its turn");
  hide_names(&session);
  EXPECT_EQ(session.waiting_for(), "its turn");
}

// Whoever adds a text to a session says here whether those who may only look see it.
TEST(Readers, EveryTextOfASessionIsJudged) {
  const google::protobuf::Descriptor* const all = api::Session::descriptor();
  int texts = 0;
  for (int i = 0; i < all->field_count(); ++i)
    texts += all->field(i)->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING ? 1 : 0;
  EXPECT_EQ(texts, 20) << "is the new one to be hidden? (hide_names)";
}

}  // namespace
}  // namespace sluice::service
