// The API over a real unix socket and real gRPC, in front of a SessionManager that answers as told.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "control/api/fake_sessions_for_test.h"
#include "control/proto/api.grpc.pb.h"
#include "control/proto/error_metadata.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::service {
namespace {

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
    stub_ = api::Control::NewStub(
        grpc::CreateChannel("unix:" + control_.socket.string(), grpc::InsecureChannelCredentials()));
  }

  std::string start_session(api::Session::State state) {
    control_.on_io([&] { control_.sessions.prototype.set_state(state); });
    grpc::ClientContext context;
    api::SendRequest request;
    request.set_peer("b");
    request.add_sources("/data/x");
    request.set_destination("in/x");
    api::SessionRef ref;
    EXPECT_TRUE(stub_->Send(&context, request, &ref).ok());
    return ref.id();
  }

  static std::string code_of(const grpc::ClientContext& context) {
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find(api::kErrorCodeKey);
    return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
  }

  FakeControl control_;
  std::unique_ptr<api::Control::Stub> stub_;
};

TEST_F(ServerTest, SendReachesTheSessionManagerOnItsOwnThread) {
  EXPECT_EQ(start_session(api::Session::TRANSFERRING), "s1");
  control_.on_io([&] {
    ASSERT_TRUE(control_.sessions.last_send);
    EXPECT_EQ(control_.sessions.last_send->sources(0), "/data/x");
    EXPECT_FALSE(control_.sessions.off_thread);
  });
}

TEST_F(ServerTest, RefusalCarriesCodeNameAndMessage) {
  control_.on_io([&] {
    control_.sessions.refusal =
        Error{ErrorCode::kOutsideExports, "/etc/shadow lies beneath no export; add one"};
  });
  grpc::ClientContext context;
  api::SessionRef ref;
  const grpc::Status status = stub_->Send(&context, api::SendRequest(), &ref);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(), "/etc/shadow lies beneath no export; add one");
  EXPECT_EQ(code_of(context), "8");
  EXPECT_EQ(context.GetServerTrailingMetadata().find(api::kErrorNameKey)->second, "outside_exports");
}

TEST_F(ServerTest, ListNodeAndCountersAreHandedThrough) {
  control_.on_io([&] {
    control_.sessions.node_reply.set_name("a");
    control_.sessions.counters_reply.add_counters()->set_name("rx_frames");
  });
  start_session(api::Session::QUEUED);
  start_session(api::Session::QUEUED);
  grpc::ClientContext list_context, node_context, counters_context;
  api::ListSessionsReply list;
  ASSERT_TRUE(stub_->ListSessions(&list_context, {}, &list).ok());
  EXPECT_EQ(list.sessions_size(), 2);
  api::NodeReply node;
  ASSERT_TRUE(stub_->Node(&node_context, {}, &node).ok());
  EXPECT_EQ(node.name(), "a");
  api::CountersReply counters;
  ASSERT_TRUE(stub_->Counters(&counters_context, {}, &counters).ok());
  EXPECT_EQ(counters.counters(0).name(), "rx_frames");
}

TEST_F(ServerTest, WatchBeginsAtOnceTellsChangesAndEndsWithTheSession) {
  const std::string id = start_session(api::Session::CONNECTING);
  grpc::ClientContext context;
  api::SessionRef ref;
  ref.set_id(id);
  auto reader = stub_->WatchSession(&context, ref);
  api::Session session;
  ASSERT_TRUE(reader->Read(&session));
  EXPECT_EQ(session.state(), api::Session::CONNECTING);
  control_.on_io([&] { control_.sessions.sessions[id].set_state(api::Session::TRANSFERRING); });
  do {
    ASSERT_TRUE(reader->Read(&session));
  } while (session.state() == api::Session::CONNECTING);
  EXPECT_EQ(session.state(), api::Session::TRANSFERRING);
  control_.on_io([&] { control_.sessions.sessions[id].set_state(api::Session::SUCCEEDED); });
  while (reader->Read(&session)) {
  }
  EXPECT_EQ(session.state(), api::Session::SUCCEEDED);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServerTest, WatchHearsOfTheEndAtOnce) {
  control_.server.reset();
  ASSERT_TRUE(control_.serve(std::chrono::hours(1)));
  const std::string id = start_session(api::Session::TRANSFERRING);
  grpc::ClientContext context;
  api::SessionRef ref;
  ref.set_id(id);
  auto reader = stub_->WatchSession(&context, ref);
  api::Session session;
  ASSERT_TRUE(reader->Read(&session));
  control_.on_io([&] {
    control_.sessions.sessions[id].set_state(api::Session::SUCCEEDED);
    control_.sessions.news();
  });
  ASSERT_TRUE(reader->Read(&session));
  EXPECT_EQ(session.state(), api::Session::SUCCEEDED);
}

TEST_F(ServerTest, WatchOfAnUnknownSessionIsAnErrorOfItsClass) {
  grpc::ClientContext context;
  api::SessionRef ref;
  ref.set_id("nope");
  auto reader = stub_->WatchSession(&context, ref);
  api::Session session;
  EXPECT_FALSE(reader->Read(&session));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code_of(context), "2");
}

TEST_F(ServerTest, StopEndsWatchersAndRemovesTheSocket) {
  grpc::ClientContext context;
  api::SessionRef ref;
  ref.set_id(start_session(api::Session::TRANSFERRING));
  auto reader = stub_->WatchSession(&context, ref);
  api::Session session;
  ASSERT_TRUE(reader->Read(&session));
  control_.server->stop();
  while (reader->Read(&session)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_EQ(code_of(context), "4");
  EXPECT_FALSE(std::filesystem::exists(control_.socket));
}

TEST_F(ServerTest, WatcherThatLeavesIsForgotten) {
  const std::string id = start_session(api::Session::TRANSFERRING);
  {
    grpc::ClientContext context;
    api::SessionRef ref;
    ref.set_id(id);
    auto reader = stub_->WatchSession(&context, ref);
    api::Session session;
    ASSERT_TRUE(reader->Read(&session));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  control_.server->stop();  // would wait for a handler that went on
  const int shows = control_.on_io([&] { return control_.sessions.shows; });
  EXPECT_EQ(control_.on_io([&] { return control_.sessions.shows; }), shows);
}

TEST_F(ServerTest, SocketIsForTheOwnerOnly) {
  struct stat info {};
  ASSERT_EQ(::stat(control_.socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(ServerTest, SecondServerOnALiveSocketIsRefusedAndTheFirstStays) {
  auto second = start_server(control_.io, control_.sessions, control_.names, control_.socket);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(start_session(api::Session::QUEUED), "s1");
}

TEST(ServerSocket, StaleSocketIsReplaced) {
  FakeControl control;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, control.socket.c_str(), sizeof(address.sun_path) - 1);
  {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(control.socket));
  EXPECT_TRUE(control.serve());
}

TEST(ServerSocket, FileThatIsNoSocketIsLeftAlone) {
  FakeControl control;
  std::ofstream(control.socket) << "mine";
  const Status served = control.serve();
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(std::filesystem::file_size(control.socket), 4U);
}

TEST(ServerSocket, PathTooLongOrMissingDirectoryIsAConfigurationError) {
  FakeControl control;
  for (const auto& path :
       {control.directory / std::string(120, 'x'), control.directory / "missing" / "c.sock"}) {
    auto server = start_server(control.io, control.sessions, control.names, path);
    ASSERT_FALSE(server) << path;
    EXPECT_EQ(server.error().code, ErrorCode::kConfiguration);
  }
}

TEST(ServerSocket, PathWithCharactersThatUrisEscapeWorks) {
  FakeControl control;
  control.socket = control.directory / "a b%20#?c.sock";
  ASSERT_TRUE(control.serve());
  EXPECT_TRUE(std::filesystem::is_socket(control.socket));
}

}  // namespace
}  // namespace sluice::service
