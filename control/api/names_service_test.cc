// The API's service of names over a real socket, in front of a NamesManager that answers as told.
// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "control/api/fake_sessions_for_test.h"
#include "control/proto/api.grpc.pb.h"
#include "control/proto/error_metadata.h"

namespace sluice::service {
namespace {

class NamesServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
    stub_ = api::Names::NewStub(
        grpc::CreateChannel("unix:" + control_.socket.string(), grpc::InsecureChannelCredentials()));
  }
  // The question goes a moment after the call's end.
  void expect_none_open() {
    for (;;) {
      if (control_.on_io([&] { return control_.names.open; }) == 0) return;
      std::this_thread::yield();
    }
  }
  static api::ListNamesRequest of_peer() {
    api::ListNamesRequest request;
    request.set_peer("b");
    return request;
  }
  static std::string code_of(const grpc::ClientContext& context) {
    const auto found = context.GetServerTrailingMetadata().find(api::kErrorCodeKey);
    return found == context.GetServerTrailingMetadata().end()
               ? ""
               : std::string(found->second.data(), found->second.size());
  }

  FakeControl control_;
  std::unique_ptr<api::Names::Stub> stub_;
};

TEST_F(NamesServiceTest, AListComesInPartsThenEnds) {
  control_.on_io([&] {
    control_.names.pages = {{{{.path = "a\xff", .type = names::Type::kLink, .target = "b"}}},
                            {{{.path = "c"}}}};
  });
  grpc::ClientContext context;
  api::ListNamesRequest request;
  request.set_peer("b");
  request.set_path("data/\xff");
  request.set_recursive(true);
  auto reader = stub_->List(&context, request);
  api::ListNamesReply part;
  ASSERT_TRUE(reader->Read(&part)) << "the peer has answered";
  EXPECT_EQ(part.entries_size(), 0);
  ASSERT_TRUE(reader->Read(&part));
  EXPECT_EQ(part.entries(0).path(), "a\xff");
  EXPECT_EQ(part.entries(0).type(), api::NameEntry::LINK);
  EXPECT_EQ(part.entries(0).target(), "b");
  ASSERT_TRUE(reader->Read(&part));
  EXPECT_EQ(part.entries(0).path(), "c");
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_TRUE(reader->Finish().ok());
  control_.on_io([&] {
    ASSERT_EQ(control_.names.asked.size(), 1U);
    EXPECT_EQ(control_.names.asked[0].first, "b");
    const auto& list = std::get<names::List>(control_.names.asked[0].second);
    EXPECT_EQ(list.path, "data/\xff");
    EXPECT_TRUE(list.recursive);
    EXPECT_FALSE(list.glob || list.itself || list.unfinished);
  });
  expect_none_open();
}

TEST_F(NamesServiceTest, AnErrorCarriesItsCodeAlsoInTheMiddle) {
  control_.on_io([&] {
    control_.names.pages = {{{{.path = "a"}}}};
    control_.names.end = Error{ErrorCode::kIncompatible, "b: a list that is not in order"};
  });
  grpc::ClientContext context;
  auto reader = stub_->List(&context, of_peer());
  api::ListNamesReply part;
  int parts = 0;
  while (reader->Read(&part)) ++parts;
  EXPECT_EQ(parts, 2);
  EXPECT_EQ(reader->Finish().error_message(), "b: a list that is not in order");
  EXPECT_EQ(code_of(context), "15");
}

TEST_F(NamesServiceTest, ChangesAnswerWhatWasDone) {
  control_.on_io([&] {
    control_.names.done = {
        .entries = 5, .failed = 2, .problems = {{.path = "x/y", .error_code = 16, .error = "mounted"}}};
  });
  api::NamesReply reply;
  {
    grpc::ClientContext context;
    api::RemoveNameRequest request;
    request.set_peer("b");
    request.set_path("data/x");
    request.set_recursive(true);
    ASSERT_TRUE(stub_->Remove(&context, request, &reply).ok());
  }
  EXPECT_EQ(reply.entries(), 5U);
  EXPECT_EQ(reply.failed(), 2U);
  EXPECT_EQ(reply.problems(0).path(), "x/y");
  EXPECT_EQ(reply.problems(0).error_code(), 16U);
  {
    grpc::ClientContext context;
    api::MakeDirectoryRequest request;
    request.set_peer("b");
    request.set_parents(true);
    ASSERT_TRUE(stub_->MakeDirectory(&context, request, &reply).ok());
  }
  {
    grpc::ClientContext context;
    api::MoveNameRequest request;
    request.set_peer("b");
    request.set_from("data/a");
    request.set_to("data/b");
    request.set_replace(true);
    ASSERT_TRUE(stub_->Move(&context, request, &reply).ok());
  }
  control_.on_io([&] {
    EXPECT_TRUE(std::get<names::Remove>(control_.names.asked[0].second).recursive);
    EXPECT_TRUE(std::get<names::MakeDirectory>(control_.names.asked[1].second).parents);
    const auto& move = std::get<names::Move>(control_.names.asked[2].second);
    EXPECT_EQ(move.from + " " + move.to, "data/a data/b");
    EXPECT_TRUE(move.replace);
  });
}

TEST_F(NamesServiceTest, ARefusalIsTheAnswer) {
  control_.on_io([&] { control_.names.refusal = Error{ErrorCode::kPeerUntrusted, "no peer b; trust it"}; });
  grpc::ClientContext context;
  api::NamesReply reply;
  api::MakeDirectoryRequest request;
  request.set_peer("b");
  const grpc::Status status = stub_->MakeDirectory(&context, request, &reply);
  EXPECT_EQ(status.error_message(), "no peer b; trust it");
  EXPECT_EQ(code_of(context), "5");
}

TEST_F(NamesServiceTest, AClientThatLeavesEndsTheQuestion) {
  control_.on_io([&] { control_.names.silent = true; });
  {
    grpc::ClientContext context;
    auto reader = stub_->List(&context, of_peer());
    api::ListNamesReply part;
    ASSERT_TRUE(reader->Read(&part));
    control_.on_io([&] { EXPECT_EQ(control_.names.open, 1); });
    context.TryCancel();
    EXPECT_FALSE(reader->Finish().ok());
  }
  expect_none_open();
}

TEST_F(NamesServiceTest, AServerThatStopsEndsTheQuestion) {
  control_.on_io([&] { control_.names.silent = true; });
  grpc::ClientContext context;
  auto reader = stub_->List(&context, of_peer());
  api::ListNamesReply part;
  ASSERT_TRUE(reader->Read(&part));
  control_.server->stop();
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_FALSE(reader->Finish().ok());
  expect_none_open();
}

// ---- of two directories --------------------------------------------------------------------------

class CompareTest : public NamesServiceTest {
 protected:
  void SetUp() override {
    NamesServiceTest::SetUp();
    request_.set_peer("b");
    request_.set_own_path("/w/t");
    request_.set_peer_path("data/t");
  }
  static names::Entry file(const std::string& path, uint64_t size = 1) {
    return {.path = path, .type = names::Type::kFile, .size_bytes = size};
  }
  // "KIND path" of each, in order.
  grpc::Status compare(std::vector<std::string>* found = nullptr) {
    grpc::ClientContext context;
    auto reader = stub_->Compare(&context, request_);
    api::CompareReply part;
    while (reader->Read(&part)) {
      EXPECT_FALSE(totals_) << "the totals come last";
      for (const api::NameDifference& each : part.differences()) {
        if (found != nullptr)
          found->push_back(api::NameDifference::Kind_Name(each.kind()) + " " + each.path());
        there_ = each.destination_type();
      }
      if (part.has_totals()) totals_ = part.totals();
    }
    const grpc::Status status = reader->Finish();
    code_ = code_of(context);
    expect_none_open();
    return status;
  }

  api::CompareRequest request_;
  std::optional<api::CompareTotals> totals_;
  api::NameEntry::Type there_ = api::NameEntry::UNKNOWN;  // of the difference that came last
  std::string code_;
};
using Found = std::vector<std::string>;

TEST_F(CompareTest, TellsWhatDiffersAndThenTheTotals) {
  control_.on_io([&] {
    control_.names.own_pages = {{{file("a"), file("b")}}, {{file("\xff", 2)}}};
    control_.names.pages = {{{file("b"), file("c")}}, {{file("\xff", 3)}}};
  });
  Found found;
  ASSERT_TRUE(compare(&found).ok());
  EXPECT_EQ(found, (Found{"MISSING a", "EXTRA c", "DIFFERENT \xff"}));
  EXPECT_EQ(there_, api::NameEntry::FILE);
  ASSERT_TRUE(totals_);
  EXPECT_EQ(totals_->same(), 1U);
  EXPECT_EQ(totals_->source(), 3U);
  EXPECT_TRUE(totals_->destination_found());
  control_.on_io([&] {
    ASSERT_EQ(control_.names.asked.size(), 2U);
    EXPECT_EQ(control_.names.asked[0].first, "own, for b");
    EXPECT_EQ(control_.names.asked[1].first, "b");
    const auto& list = std::get<names::List>(control_.names.asked[1].second);
    EXPECT_EQ(list.path, "data/t");
    EXPECT_TRUE(list.recursive);
    EXPECT_FALSE(list.unfinished) << "what transfers left unfinished is never extra";
  });
}

TEST_F(CompareTest, ThePeerMayBeTheSource) {
  control_.on_io([&] {
    control_.names.own_pages = {{{file("mine")}}};
    control_.names.pages = {{{file("theirs")}}};
  });
  request_.set_from_peer(true);
  Found found;
  ASSERT_TRUE(compare(&found).ok());
  EXPECT_EQ(found, (Found{"EXTRA mine", "MISSING theirs"}));
  control_.on_io([&] { EXPECT_EQ(control_.names.asked[0].first, "own"); });
}

TEST_F(CompareTest, WithDigestsBothSidesAreAskedForThem) {
  const auto summed = [](const char* name, uint64_t digest) {
    names::Entry entry = file(name);
    entry.digest = digest;
    return entry;
  };
  control_.on_io([&] {
    control_.names.own_pages = {{{summed("a", 1), summed("b", 2)}}};
    control_.names.pages = {{{summed("a", 1), summed("b", 3)}}};
  });
  request_.set_digests(true);
  Found found;
  ASSERT_TRUE(compare(&found).ok());
  EXPECT_EQ(found, (Found{"DIFFERENT b"}));
  control_.on_io([&] {
    for (const auto& [who, asked] : control_.names.asked)
      EXPECT_TRUE(std::get<names::List>(asked).digests) << who;
    control_.names.own_pages = {{{summed("a", 1)}}};
    control_.names.pages = {{{file("a")}}};
  });
  EXPECT_FALSE(compare().ok()) << "a peer that is too old tells none";
  EXPECT_EQ(code_, "15");
}

TEST_F(CompareTest, RulesJudgeNamesBeneathTheTop) {
  control_.on_io([&] {
    control_.names.own_pages = {{{file("a"), file("b")}}};
    control_.names.pages = {{{file("a"), file("c")}}};
  });
  request_.set_top("t/");
  for (const char* pattern : {"/t/b", "/c", "/t/a"}) request_.add_rules()->set_pattern(pattern);
  Found found;
  ASSERT_TRUE(compare(&found).ok());
  EXPECT_EQ(found, (Found{"EXTRA c"}));
  request_.add_rules()->set_pattern(std::string("a\0b", 3));
  EXPECT_FALSE(compare().ok());
  EXPECT_EQ(code_, "2");
}

TEST_F(CompareTest, ADestinationThatIsNotThereLacksAll) {
  control_.on_io([&] {
    control_.names.own_pages = {{{file("a")}}};
    control_.names.end = Error{ErrorCode::kSourceUnreadable, "b: no such directory"};
  });
  Found found;
  ASSERT_TRUE(compare(&found).ok());
  EXPECT_EQ(found, (Found{"MISSING a"}));
  EXPECT_FALSE(totals_->destination_found());
  request_.set_from_peer(true);
  totals_.reset();
  EXPECT_EQ(compare().error_message(), "b: no such directory") << "as the source it is needed";
  EXPECT_EQ(code_, "7");
}

TEST_F(CompareTest, OwnDestinationThatIsNotThereLacksAll) {
  control_.on_io([&] {
    control_.names.pages = {{{file("a")}}};
    control_.names.own_refusal = Error{ErrorCode::kSourceUnreadable, "no such directory"};
  });
  EXPECT_EQ(compare().error_message(), "no such directory");
  request_.set_from_peer(true);
  Found found;
  ASSERT_TRUE(compare(&found).ok());
  EXPECT_EQ(found, (Found{"MISSING a"}));
}

// What came of it before might be all that there is, or not.
TEST_F(CompareTest, AListThatBreaksOffIsNone) {
  for (const auto code :
       {ErrorCode::kSourceUnreadable, ErrorCode::kPeerUnreachable, ErrorCode::kOutsideExports}) {
    control_.on_io([&] {
      control_.names.own_pages = {{{file("a")}}};
      control_.names.pages = {{{file("a")}}};
      control_.names.end = Error{code, "b: gone"};
    });
    EXPECT_EQ(compare().error_message(), "b: gone");
    EXPECT_FALSE(totals_);
  }
}

TEST_F(CompareTest, OnlyDirectoriesAreCompared) {
  control_.on_io([&] { control_.names.pages = {{{file("")}}}; });
  EXPECT_NE(compare().error_message().find("data/t at b: is no directory"), std::string::npos);
  EXPECT_EQ(code_, "9");
  request_.set_peer_path("");
  EXPECT_FALSE(compare().ok()) << "that would be the list of its exports";
  EXPECT_EQ(code_, "2");
}

TEST_F(CompareTest, AClientThatLeavesEndsIt) {
  control_.on_io([&] { control_.names.silent = true; });
  {
    grpc::ClientContext context;
    auto reader = stub_->Compare(&context, request_);
    for (;;) {
      if (control_.on_io([&] { return control_.names.open; }) == 1) break;
      std::this_thread::yield();
    }
    context.TryCancel();
    EXPECT_FALSE(reader->Finish().ok());
  }
  expect_none_open();
}

}  // namespace
}  // namespace sluice::service
