// The text of `sluice doctor --report`: all that somebody far away needs to know of a node that does not do
// what it should, or of a card that it was tried on.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"
#include "tools/doctor/cards.h"
#include "tools/doctor/facts.h"
#include "tools/doctor/host.h"

namespace sluice::cli {

struct ReportFacts {
  std::string when;  // RFC 3339
  const doctor::Facts& node;
  doctor::HostFacts host;
  std::vector<doctor::Card> cards;
  Result<api::NodeReply> live;  // what sluice-control says; an error: why it says nothing
  Result<api::CountersReply> counters;
  std::string findings;  // as `sluice doctor` prints them
};

std::string report_text(const ReportFacts& facts);

// What the dataplane drives, in one line; it must be attached.
std::string dataplane_text(const api::NodeReply& reply);

// The devices that were tried (tools/cards/tried.tsv), in columns.
std::string tried_text();

}  // namespace sluice::cli
