// Beside its calls the API's server does two things: it wakes those who watch sessions, and it cuts long
// answers into parts.
//
// Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "control/proto/api.grpc.pb.h"
#include "dataplane/base/error.h"

namespace sluice::service {

using std::chrono::milliseconds;

inline constexpr size_t kBundlePartBytes = 1 << 20;
inline constexpr size_t kBundleBytesMax = 256U << 20;  // control/journal/bundle.h

inline std::string essence(api::Session session) {  // the clocks alone are no news
  session.clear_elapsed_s();
  session.clear_data_elapsed_s();
  return session.SerializeAsString();
}

// Wakes the watchers, from any thread. The server shares it with the session manager, which may outlive the
// server.
class News {
 public:
  void tell() {
    const std::lock_guard lock(mutex_);
    ++told_;
    wake_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  uint64_t told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  bool stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }
  // Until there is more than what was `told` before, or the time is over; true when it is to stop.
  bool wait(uint64_t told, milliseconds time) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, time, [&] { return stopping_ || told_ != told; });
    return stopping_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  uint64_t told_ = 0;
  bool stopping_ = false;
};

inline grpc::Status write_bundle(const std::string& bundle, grpc::ServerWriter<api::BundlePart>* writer) {
  for (size_t at = 0; at < bundle.size(); at += kBundlePartBytes) {
    api::BundlePart part;
    part.set_bytes(bundle.substr(at, kBundlePartBytes));
    if (!writer->Write(part)) return {grpc::StatusCode::CANCELLED, "the client left"};
  }
  return grpc::Status::OK;
}

inline Result<std::string> read_bundle(grpc::ServerReader<api::BundlePart>* reader) {
  std::string bundle;
  for (api::BundlePart part; reader->Read(&part);) {
    bundle += part.bytes();
    if (bundle.size() > kBundleBytesMax)
      return Error{ErrorCode::kUsage, "a file of more than 256 MiB is no session that was exported"};
  }
  return bundle;
}

}  // namespace sluice::service
