// Progress of one session: what a line says, and when a line is due. Pure; the time is an argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/proto/api.pb.h"

namespace sluice::cli {

// Of an id that people are shown, at least.
inline constexpr size_t kShortIdBytes = 8;

// " so far" while the list of files is read: totals grow, and nobody knows a percentage or an end.
std::string_view so_far(const api::Session& session);
// "450 MiB of 1.00 GiB", and so_far()
std::string bytes_text(const api::Session& session);
// Name of the only file, "3 files (1 done)", or, where directories and links may be among them, "3 names (1
// done)".
std::string session_subject(const api::Session& session);
// "send", and who has ordered it; of one that this node has ordered, of whom.
std::string direction_text(const api::Session& session);
// Of that what fits where there is little room: "1/3 files".
std::string short_subject(const api::Session& session);
// Chunks reported lost, of all that were sent.
double loss_fraction(const api::Session& session);
// Seconds until the end at the present rate; nullopt while there is no rate, or nobody knows how much it is.
std::optional<double> eta_s(const api::Session& session);

// "deadline 18:00:00, chance 93 %", "late by 0:12", ...; empty: it has none.
std::string deadline_text(const api::Session& session);

// One line of at most `width` columns, for redrawing in place: name, bar, percent, bytes, rate, ETA, loss,
// retransmits, named wait. When it is too long the bar and the name shrink, then what stands last goes.
std::string progress_line(const api::Session& session, size_t width);
// The same for a log, of any length, without a bar.
std::string progress_text(const api::Session& session);
// What held it, and for how much of the time; empty when nothing did, or nobody can say.
std::string bottleneck_text(const api::Bottleneck& bottleneck);
// What an operator reads after success: bytes, seconds, goodput, retransmits; then a line a file with the
// digests of both sides. Ends with a newline.
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
