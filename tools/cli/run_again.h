// When the transfers of a `sluice run` may run, and when they run again: retry, not_before, window, every.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "control/client/client.h"
#include "dataplane/base/error.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/unattended/waits.h"
#include "tools/unattended/window.h"

namespace sluice::cli {

class RunMemory;

struct RunTimes {
  uint32_t retry = 0;      // so often more
  std::string not_before;  // as it was given; empty: at once
  std::optional<unattended::Window> window;
  std::string window_text;
  int64_t every_ns = 0;  // 0: once
};

bool is_run_time(const std::string& key);
// Its value, as text. kUsage says what is wrong with it.
Status set_run_time(const std::string& key, const std::string& value, RunTimes* times);
// Rows of run_file_reference().
std::string run_time_reference();

// Whether the same may end otherwise later.
bool worth_another_try(ErrorCode code);

// Holds up what runs outside the window, on a thread of its own; and waits for whoever begins something.
class Gate {
 public:
  Gate(Environment& environment, const RunTimes& times, Canceller& canceller);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Of what runs. The memory hears of what is held up; none: as before.
  void use(std::shared_ptr<api::Client> client, std::shared_ptr<RunMemory> memory = nullptr);

  // These return false if the command was interrupted.
  bool wait_until_open();
  bool wait_not_before();

 private:
  bool is_open() const;
  void keep();
  void hold_or_let_go();
  void say(const std::string& text) const;

  Environment& environment_;
  const RunTimes& times_;
  Canceller& canceller_;
  std::mutex mutex_;
  std::condition_variable leaving_changed_;
  std::shared_ptr<api::Client> client_;
  std::shared_ptr<RunMemory> memory_;
  std::map<std::string, bool> running_;  // by session: whether it is held up
  bool was_open_ = true;
  bool leaving_ = false;
  std::thread keeper_;
};

}  // namespace sluice::cli
