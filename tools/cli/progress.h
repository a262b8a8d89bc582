// Progress of one session: what a line says, and when a line is due. Pure; the time is an argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/proto/api.pb.h"

namespace sluice::cli {

bool session_ended(const api::Session& session);
// "transferring", "succeeded", ...
std::string state_name(api::Session::State state);
// Name of the only file, or "3 files (1 done)".
// Of an id that people are shown, at least.
inline constexpr size_t kShortIdBytes = 8;

std::string session_subject(const api::Session& session);
// Chunks reported lost, of all that were sent.
double loss_fraction(const api::Session& session);
// Seconds until the end at the present rate; nullopt while there is no rate.
std::optional<double> eta_s(const api::Session& session);

// "deadline 18:00:00, chance 93 %", "late by 0:12", ...; empty: it has none.
std::string deadline_text(const api::Session& session);

// One line of at most `width` columns, for redrawing in place: name, bar, percent, bytes, rate, ETA, loss,
// retransmits, named wait. When it is too long the bar and the name shrink, then what stands last goes.
std::string progress_line(const api::Session& session, size_t width);
// The same for a log, of any length, without a bar.
std::string progress_text(const api::Session& session);
// What an operator reads after success: bytes, seconds, goodput, retransmits; then a line a file with the
// digests of both sides. Ends with a newline.
// What held it, and for how much of the time; empty when nothing did, or nobody can say.
std::string bottleneck_text(const api::Bottleneck& bottleneck);
std::string summary_text(const api::Session& session);

// Says when a line is due: on a terminal at most 10 a second, otherwise one at every change of state or of
// the named wait, and one in 5 s.
class ProgressPace {
 public:
  explicit ProgressPace(bool terminal) : terminal_(terminal) {}
  bool due(const api::Session& session, int64_t now_ns);

 private:
  bool terminal_;
  std::optional<int64_t> last_ns_;
  api::Session::State state_ = api::Session::STATE_UNSPECIFIED;
  std::string waiting_for_;
};

}  // namespace sluice::cli
