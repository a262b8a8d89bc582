// The API's service of names where no peer is named: names of this node.
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

class OwnNamesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
    stub_ = api::Names::NewStub(
        grpc::CreateChannel("unix:" + control_.socket.string(), grpc::InsecureChannelCredentials()));
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

TEST_F(OwnNamesTest, WithoutAPeerOwnNamesAreRemoved) {
  control_.on_io([&] { control_.names.done = {.entries = 3}; });
  grpc::ClientContext context;
  api::RemoveNameRequest request;
  request.set_path("/w/t/x");
  request.set_recursive(true);
  api::NamesReply reply;
  ASSERT_TRUE(stub_->Remove(&context, request, &reply).ok());
  EXPECT_EQ(reply.entries(), 3U);
  control_.on_io([&] {
    EXPECT_EQ(control_.names.asked[0].first, "own");
    EXPECT_EQ(std::get<names::Remove>(control_.names.asked[0].second).path, "/w/t/x");
    EXPECT_TRUE(std::get<names::Remove>(control_.names.asked[0].second).recursive);
  });
}

TEST_F(OwnNamesTest, WithoutAPeerOwnNamesAreListed) {
  control_.on_io([&] { control_.names.own_pages = {{{{.path = "a\xff"}}}, {{{.path = "c"}}}}; });
  grpc::ClientContext context;
  api::ListNamesRequest request;
  request.set_path("data");
  auto reader = stub_->List(&context, request);
  api::ListNamesReply part;
  std::string paths;
  while (reader->Read(&part)) {
    for (const api::NameEntry& entry : part.entries()) paths += entry.path() + " ";
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(paths, "a\xff c ");
  control_.on_io([&] {
    EXPECT_EQ(control_.names.asked[0].first, "own") << "as an operator, for no peer";
    control_.names.own_refusal = Error{ErrorCode::kSourceUnreadable, "data: no such directory"};
  });
  grpc::ClientContext refused;
  reader = stub_->List(&refused, request);
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_EQ(reader->Finish().error_message(), "data: no such directory");
  EXPECT_EQ(code_of(refused), "7");
}

TEST_F(OwnNamesTest, WithoutAPeerOwnNamesAreMadeAndMoved) {
  control_.on_io([&] { control_.names.done = {.entries = 1}; });
  grpc::ClientContext made, moved;
  api::MakeDirectoryRequest make;
  make.set_path("data/new");
  api::MoveNameRequest move;
  move.set_from("data/a");
  move.set_to("data/b");
  api::NamesReply reply;
  ASSERT_TRUE(stub_->MakeDirectory(&made, make, &reply).ok());
  ASSERT_TRUE(stub_->Move(&moved, move, &reply).ok());
  EXPECT_EQ(reply.entries(), 1U);
  control_.on_io([&] {
    EXPECT_EQ(control_.names.asked[0].first, "own");
    EXPECT_EQ(std::get<names::MakeDirectory>(control_.names.asked[0].second).path, "data/new");
    EXPECT_EQ(std::get<names::Move>(control_.names.asked[1].second).to, "data/b");
  });
}

TEST_F(OwnNamesTest, AServerThatStopsEndsARemoval) {
  control_.on_io([&] { control_.names.silent = true; });
  std::thread stopper([this] {
    while (!control_.names.removing) std::this_thread::yield();
    control_.server->stop();
  });
  grpc::ClientContext context;
  api::NamesReply reply;
  EXPECT_FALSE(stub_->Remove(&context, {}, &reply).ok());
  stopper.join();
}

}  // namespace
}  // namespace sluice::service
