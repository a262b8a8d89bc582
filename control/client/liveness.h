// Ends a long call when control stands still: its process is stopped or swapped out, or its loop is stuck.
// The call cannot tell that from an answer that takes time, such as that of a file which is read for hours.
// So while it waits, Liveness asks control for something that its loop answers at once.
//
// For clients of the API. One thread for as long as it lives; any answer, a refusal too, is a sign of life.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "control/proto/api.grpc.pb.h"

namespace sluice::api {

struct LivenessTimes {
  std::chrono::milliseconds first{3000};    // most calls have ended before
  std::chrono::milliseconds between{5000};  // from an answer to the next question
  std::chrono::milliseconds limit{15'000};  // without an answer it stands still
};

class Liveness {
 public:
  Liveness(Control::Stub& control, grpc::ClientContext& call, LivenessTimes times = {})
      : control_(control), call_(call), times_(times), thread_([this] { run(); }) {}
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;
  ~Liveness() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      if (question_ != nullptr) question_->TryCancel();
    }
    wake_.notify_one();
    thread_.join();
  }

  // Then the call was cancelled for it.
  bool stands_still() const {
    const std::lock_guard lock(mutex_);
    return still_;
  }

  static std::string problem(const std::string& where, LivenessTimes times = {}) {
    return "sluice-control" + where + " stands still: no answer within " +
           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(times.limit).count()) +
           " s; see whether it is stopped or swapped out ('ps -o stat,cmd -C sluice-control', 'systemctl "
           "status sluice-control') and what its log says last";
  }

 private:
  void run() {
    for (auto wait = times_.first; !over_within(wait); wait = times_.between) {
      if (answers()) continue;
      const std::lock_guard lock(mutex_);
      if (over_) return;
      still_ = true;
      call_.TryCancel();
      return;
    }
  }
  bool over_within(std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, wait, [this] { return over_; });
  }
  bool answers() {
    grpc::ClientContext question;
    question.set_deadline(std::chrono::system_clock::now() + times_.limit);
    {
      const std::lock_guard lock(mutex_);
      if (over_) return true;
      question_ = &question;
    }
    SessionRef none;
    none.set_id("-");  // begins no session's id: a look at the loop and nothing else
    Session reply;
    const grpc::Status status = control_.ShowSession(&question, none, &reply);
    const std::lock_guard lock(mutex_);
    question_ = nullptr;
    return status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  Control::Stub& control_;
  grpc::ClientContext& call_;
  const LivenessTimes times_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  bool still_ = false;
  grpc::ClientContext* question_ = nullptr;
  std::thread thread_;
};

}  // namespace sluice::api
