// SPDX-License-Identifier: Apache-2.0
#include "control/proto/valid_text.h"

#include <gtest/gtest.h>

#include "control/proto/api.pb.h"

namespace sluice::api {
namespace {

TEST(ValidText, OfAllFieldsAndMessagesWithinIsWhatAReaderTakes) {
  Session session;
  session.set_id("abc");
  session.set_error("cannot read \"gr\xfc\xdf\"");
  session.add_files()->set_source("big\xff");
  session.add_files()->set_source("größe\n");
  session.mutable_bottleneck()->add_evidence("\xc0\x80");
  session.mutable_local_files()->add_names("/in/\xff");  // bytes
  make_texts_valid(&session);
  EXPECT_EQ(session.error(), "cannot read \"gr??\"");
  EXPECT_EQ(session.files(0).source(), "big?");
  EXPECT_EQ(session.files(1).source(), "größe\n") << "what is valid stays as it is";
  EXPECT_EQ(session.local_files().names(0), "/in/\xff");
  Session read;
  EXPECT_TRUE(read.ParseFromString(session.SerializeAsString()));
  EXPECT_EQ(read.id(), "abc");
}

}  // namespace
}  // namespace sluice::api
