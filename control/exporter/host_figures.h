// What a scrape asks of the system, on the exporter's threads: this process, and the file systems of
// exports.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "control/metrics/figures.h"
#include "dataplane/base/config/config.h"

namespace sluice::exporter {

// What cannot be read is 0.
metrics::ProcessFigures process_figures();

// How full the file systems of the exports are. Asking one that does not answer (a network that is
// away) takes as long as it likes, so each is asked on a thread of its own, one at a time, and a scrape tells
// what each said last.
class ExportSpaces {
 public:
  explicit ExportSpaces(const std::vector<config::Export>& exports);

  // Any thread; never blocks. What was not heard of for a minute is left out.
  std::vector<metrics::ExportSpace> newest();
  // One round is over: for tests.
  void wait();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // its thread may outlive this object
};

}  // namespace sluice::exporter
