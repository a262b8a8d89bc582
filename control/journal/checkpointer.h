// A thread that puts the journal's log into its database when that is due (checkpoint.h), so that hardly a
// write has to.
//
// It shares the mutex of those who write, and holds it only while it works.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "control/journal/checkpoint.h"

namespace sluice::journal {

class Checkpointer {
 public:
  Checkpointer(std::mutex& mutex, std::function<void()> work);
  ~Checkpointer();  // waits for work that is under way; the mutex is free
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  // With the mutex held. Where no pause may be waited for, the work is done here.
  void written(uint32_t pages);

 private:
  void make();
  void run();

  std::mutex& mutex_;
  const std::function<void()> work_;
  std::condition_variable changed_;
  Checkpoint checkpoint_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace sluice::journal
