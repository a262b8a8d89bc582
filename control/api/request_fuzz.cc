// Any request over the operator's API: options and sources are refused with one line, or within their bounds.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/convert.h"
#include "control/board/flow_table.h"
#include "control/gather/sources.h"
#include "control/node/options.h"
#include "control/selection/choice.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

using namespace sluice;
using namespace sluice::service;

template <typename T>
bool good(const Result<T>& result) {
  if (result) return true;
  fuzz::require(result.error().code == ErrorCode::kUsage && !result.error().message.empty(),
                "usage, and why");
  return false;
}

void check(const node::Wishes& wishes) {
  const bool discard = wishes.destination == transfer::kNullDestination;
  const Result<transfer::Options> parsed = node::parse_options(wishes, config::Node());
  if (!good(parsed)) return;
  fuzz::require(parsed->lanes >= 1 && parsed->lanes <= board::kLanesMax, "lanes in bounds");
  fuzz::require(parsed->rate_bps > 0 && parsed->rate_bps <= config::Node().port_rate_bps, "rate in bounds");
  fuzz::require(parsed->chunk_bytes >= wire::kChunkBytesMin && parsed->chunk_bytes <= wire::kChunkBytesMax &&
                    parsed->chunk_bytes % wire::kChunkBytesStep == 0,
                "chunks in bounds");
  fuzz::require(wire::checks(parsed->crc) || discard, "files are checked");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool discard = input.flag();
  const auto bytes = input.rest();
  api::SendRequest request;
  (void)request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  if (discard) request.set_destination(std::string(transfer::kNullDestination));
  const Result<node::Wishes> understood = wishes_of(request);
  if (!good(understood)) return 0;
  const node::Wishes& wishes = *understood;
  check(wishes);
  const Status selected = selection::check_selection(wishes.selection, wishes.sources.size());
  const auto choice = selection::Choice::make(wishes.selection);
  if (selected) {
    fuzz::require(static_cast<bool>(choice), "what was checked can be used");
    for (const std::string& name : wishes.selection.names) {
      const Result<std::string> clean = selection::clean_name(name);
      fuzz::require(clean && *clean == name, "a name is clean");
    }
  }
  for (const std::string& source : request.sources()) {
    const Result<std::optional<uint64_t>> memory = gather::parse_memory_source(source);
    if (good(memory) && *memory) fuzz::require(**memory <= catalog::kFileBytesMax, "a size in bounds");
  }
  return 0;
}
