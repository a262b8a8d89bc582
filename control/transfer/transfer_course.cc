// Where a transfer goes from there: attempts, what follows them, its end, and who is told of it. Rests and
// pauses stand in transfer_rest.cc.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "control/transfer/peer_call.h"
#include "control/transfer/transfer.h"
#include "dataplane/base/counted.h"

namespace sluice::transfer {

// ---- going on ----------------------------------------------------------------------------------

void Transfer::advance(uint64_t now_ns) {
  keep_pace(now_ns);
  watch_stillness(now_ns);
  for (TransferPhase before = phase_;; before = phase_) {
    switch (before) {
      case P::kActive:
      case P::kForgetting:
        follow_legs(now_ns);
        break;
      case P::kQueued:
        keep_queued(now_ns);
        break;
      case P::kResting:
        keep_resting(now_ns);
        break;
      case P::kPaused:
        keep_paused(now_ns);
        break;
      case P::kParting:
        for (auto& leg : legs_) leg->advance(now_ns, out_);
        std::erase_if(ends_.parting, [this](LegId leg) { return legs_[leg]->take_parted(); });
        if (detached_) {
          over();
        } else if (ends_.parting.empty()) {
          phase_.change(P::kAware);
          peer_.unaware.clear();
          write_record(Entry::kAware, Durability::kProcess, now_ns);
        }
        break;
      default:
        break;
    }
    // An attempt that follows another at once is in the same phase, and has somewhere to go.
    if (phase_ == before && !std::exchange(attempts_.begun, false)) return;
  }
}

void Transfer::follow_legs(uint64_t now_ns) {
  const uint64_t changes = job_.legs.changes();
  for (const LegId id : job_.legs.in_order()) {
    Leg& leg = *legs_[id];
    follow(leg, now_ns);
    std::optional<AttemptEnd> end = leg.take_end();
    if (!end) continue;
    note_brief(leg, now_ns);
    leg_ended(leg, *end, now_ns);
    if (job_.legs.all_away()) return attempt_ended(AttemptEnd(telling_end()), now_ns);
  }
  leave_out_differing(now_ns);
  stop_beginners(now_ns);
  stop_callers(now_ns);
  revive_legs(now_ns);
  // One may have waited for what another has come to.
  attempts_.begun |= legs_.size() > 1 && job_.legs.changes() != changes;
}

void Transfer::follow(Leg& leg, uint64_t now_ns) {
  leg.advance(now_ns, out_);
  count_bytes_done();
  if (leg.moving() && times_.data_started_ns == 0) times_.data_started_ns = now_ns;
  watch_rate(now_ns);
  watch_arrival(now_ns);
  if (leg.take_agreed()) {
    Batch batch;
    if (!std::exchange(job_.began, true)) batch.blocks = job_.take_rows();
    if (!job_.has_end() || !job_.end()->running()) ++attempts_.count;  // else this leg joins others
    batch.record = record(now_ns, record_state());
    batch.files = file_rows();
    // Before data moves: a node that does not know of it makes the other forget what has arrived.
    write(Entry::kAgreed, std::move(batch), Durability::kPower, leg.id());
    leg.open_flows(out_);
  }
  if (leg.take_flows_changed() && job_.began && !job_.complete())
    write_record(Entry::kFlows, Durability::kProcess, now_ns);
  if (leg.take_completion()) {
    Batch batch;
    batch.record = record(now_ns, RecordState::kSucceeded);
    batch.files = file_rows();  // some of them may have failed
    write(Entry::kComplete, std::move(batch), Durability::kPower, leg.id());
  }
  if (const std::optional<Error> failure = leg.take_failure()) {
    ends_.of_all = leg.id();
    stop_others(leg, *failure, now_ns);
  }
  if (leg.take_anew()) {
    stop_others(leg, {ErrorCode::kPeerUnreachable, fmt::format("{} opens the session anew", leg.peer_name())},
                now_ns);
  }
  if (leg.take_forgetting()) forget();
}

// An operator who asked for a least rate would rather know than wait. What the session waits for by itself,
// or was told to wait for, does not count.
void Transfer::watch_rate(uint64_t now_ns) {
  const uint64_t least_bps = job_.request ? job_.request->options.min_rate_bps : 0;
  if (least_bps == 0 || !moving() || job_.complete() || job_.waits_for_list())
    return void(patience_.least = {});
  const uint64_t bytes = job_.bytes_done();
  if (patience_.least.since_ns == 0) return void(patience_.least = {.since_ns = now_ns, .bytes = bytes});
  if (now_ns - patience_.least.since_ns < kLeastRateNs) return;
  const double seconds = static_cast<double>(now_ns - patience_.least.since_ns) * 1e-9;
  const double rate_bps = 8 * static_cast<double>(bytes - std::min(bytes, patience_.least.bytes)) / seconds;
  patience_.least = {.since_ns = now_ns, .bytes = bytes};
  if (rate_bps >= static_cast<double>(least_bps)) return;
  fail_attempt(
      Error{ErrorCode::kTooSlow,
            fmt::format("{:.3f} Mbit/s over {:.0f} s, less than the {:.3f} Mbit/s that were asked for "
                        "at least: look for what limits it, or ask for less",
                        rate_bps * 1e-6, seconds, static_cast<double>(least_bps) * 1e-6)},
      now_ns);
}

// As the timeout of rsync: whoever gave one would rather know than wait, whatever it waits for, but for its
// turn and for an operator. Attempts that move nothing do not count as moving.
void Transfer::watch_stillness(uint64_t now_ns) {
  const uint64_t most_ns = job_.request ? job_.request->options.timeout_s * kSecondNs : 0;
  if (most_ns == 0 || phase_ >= P::kEnding || detached_) return;
  const uint64_t names = job_.has_end() ? job_.catalog()->names() : 0;
  const uint64_t mark = shown_.bytes_done + names + (job_.has_end() ? job_.steps() : 0);
  const bool waits = paused_ || phase_ == P::kQueued || phase_ == P::kPaused ||
                     any_leg([](const Leg& leg) { return leg.queued(); });
  if (patience_.still.since_ns == 0 || waits || mark != patience_.still.mark)
    patience_.still = {.mark = mark, .since_ns = now_ns};
  if (now_ns - patience_.still.since_ns < most_ns) return;
  const std::string what = waiting_for();
  give_up(
      Error{ErrorCode::kStalled,
            fmt::format("nothing has moved with {} for {} s, the timeout that it was given; it waited for {}",
                        peers(), most_ns / kSecondNs, what.empty() ? "the peer" : what)},
      now_ns);
}

// What a destination has is certain while data moves; a source knows it once its peer has said so.
void Transfer::count_bytes_done() {
  const bool closes = any_leg([](const Leg& leg) { return leg.phase() >= LegPhase::kClosing; });
  if (!moving() && !closes) return;
  const uint64_t now = job_.bytes_done();
  const bool certain = moving() && job_.has_end() && job_.end()->bytes_are_certain();
  const uint32_t failed = job_.has_end() ? job_.catalog()->objects_failed() : 0;
  if (certain && std::exchange(shown_.failed, failed) != failed) shown_.bytes_done = now;
  if (certain && now < shown_.bytes_done) {
    out_.log(LogLevel::kWarn, fmt::format("{} bytes that had been written are lost: they are sent again",
                                          shown_.bytes_done - now));
    shown_.bytes_done = now;
  }
  shown_.bytes_done = std::max(shown_.bytes_done, now);
}

// Files go, and what is known of them: nothing of them was moved.
void Transfer::forget() {
  release_ = Release::kForget;
  out_.add(ReleaseFiles{.keep = false});
}

void Transfer::on(const FilesReleased& event, uint64_t now_ns) {
  const Release what = std::exchange(release_, Release::kNone);
  ++job_.list_tag;  // nothing more is read of a list
  Batch batch;
  if (what == Release::kLeave) return over();
  if (what == Release::kPause) {
    if (job_.has_end()) job_.end()->released();
    return;
  }
  if (what == Release::kForget) {
    const bool began = std::exchange(job_.began, false);
    job_.made.emplace<std::monostate>();
    job_.terms.reset();
    shown_.bytes_done = 0;
    if (!began) return forgotten(now_ns);
    batch.drop_files = batch.drop_blocks = true;
    batch.record = record(now_ns, record_state());
    return write(Entry::kForgotten, std::move(batch), Durability::kPower);
  }
  CHECK(what == Release::kEnd, "what is answered was asked for");
  if (!outcome_) outcome_ = record_state();
  // What could not be removed the next control tries again: the journal has it.
  if (!std::exchange(files_.left, files_.left && event.left != 0) || files_.left) return part_or_over(now_ns);
  phase_.change(P::kCleaning);
  batch.drop_blocks = true;
  batch.record = record(now_ns, *outcome_);
  write(Entry::kCleaned, std::move(batch), Durability::kProcess);
}

void Transfer::forgotten(uint64_t now_ns) {
  if (phase_ == P::kForgetting) return rest(Error(rest_->error), AttemptEnd(rest_->end), now_ns);
  for (auto& leg : legs_) leg->forgotten(now_ns, out_);
}

// ---- between attempts --------------------------------------------------------------------------

void Transfer::attempt_ended(const AttemptEnd& end, uint64_t now_ns) {
  if (cancelled_) return end_with(error_, now_ns);  // whatever came after: the operator was told so
  if (job_.has_end() && job_.complete()) {
    // A source that was called hears from nobody else that its files have arrived.
    if (job_.initiator && job_.role == Role::kDestination) peer_.unaware = peers_without_end();
    return end_with(job_.end()->lost(), now_ns);
  }
  if (end.peer_ended) return end_with(end.error, now_ns);
  if (detached_) return leave();
  const Error error = end.error.value_or(Error{ErrorCode::kInternal, "the attempt ended without a reason"});
  if (!job_.began) {
    // As with any tool, an error at the beginning is the end, unless somebody just fell over, or it has
    // waited for its turn.
    const bool fell = error.code == ErrorCode::kPeerUnreachable || error.code == ErrorCode::kDaemonNotRunning;
    const bool again = call_waits() || end.peer_paused ||
                       (fell && job_.initiator && (peer_.contacted || turn_.waited || end.board_lost));
    if (!again) return end_with(error, now_ns);
    if (!job_.has_end()) return rest(error, end, now_ns);
  }
  if (!job_.began || (end.peer_forgot && !paused_)) {
    phase_.change(P::kForgetting);
    rest_ = Rest{.error = error, .end = end, .name = {}};
    return forget();
  }
  follow_remedy(error, end, now_ns);
}

void Transfer::follow_remedy(const Error& error, const AttemptEnd& end, uint64_t now_ns) {
  if (end.paused && !paused_) return want_attempts(now_ns);  // continued meanwhile
  const Remedy remedy = remedy_of(error.code);
  if (remedy == Remedy::kNone && !end.paused) return end_with(error, now_ns);
  if (paused_) return hold(std::nullopt, now_ns);
  out_.log(LogLevel::kWarn, fmt::format("with {} is interrupted: {}", peers(), error.message));
  if (remedy == Remedy::kOperator && job_.initiator) return hold(error, now_ns);
  if (remedy == Remedy::kOperator) held_ = error;  // the initiator's operator will have it go on
  rest(error, end, now_ns);
  // Somebody mends a file system, at this node or at the other, before the peer calls again.
  if (!job_.initiator && (remedy == Remedy::kOperator || (end.peer_paused && end.place == 0)))
    let_go_of_files();
}

// ---- the end -----------------------------------------------------------------------------------

void Transfer::end_with(std::optional<Error> error, uint64_t now_ns) {
  error_ = std::move(error);
  note_whole(now_ns);
  give_up_place();
  const bool unheard = phase_ != P::kActive;
  phase_.change(P::kEnding);
  times_.ended_ns = now_ns;
  if (times_.data_started_ns != 0) times_.data_ended_ns = now_ns;
  files_.left = false;
  if (error_) foresee_failure(unheard);
  // The peer may begin it once more, unless an operator did not want it.
  if (!job_.began && !job_.initiator && !cancelled_) return release_ended(now_ns);
  Batch batch;
  batch.record = record(now_ns, record_state());
  if (error_ || !complete_noted_) batch.files = file_rows();
  batch.drop_blocks = !files_.left;
  // An end in success is found again from what is durable anyway.
  write(Entry::kEnded, std::move(batch), error_ ? Durability::kPower : Durability::kProcess);
}

// Who is to be told, and what is to be removed.
void Transfer::foresee_failure(bool unheard) {
  // A word to the peer may be lost with the process that heard it: the peer is told until it says that it
  // knows. It may have agreed, and hold files, though this node never heard so. A peer that began the
  // transfer calls, and hears it then; but not while it is paused.
  const bool unaware = job_.initiator ? job_.began || peer_.contacted ||
                                            any_leg([](const Leg& leg) { return leg.peer_may_know(); })
                                      : job_.began && (cancelled_ || unheard);
  peer_.unaware.clear();
  for (const auto& leg : legs_)
    if (unaware) peer_.unaware.insert(leg->peer_name());
  files_.left = job_.began && job_.has_end() && job_.end()->leaves_files();
  if (!gone_elsewhere()) return;
  peer_.unaware.clear();
  files_.left = false;
}

// What there is of its files is another node's now.
bool Transfer::gone_elsewhere() const { return error_ && error_->code == ErrorCode::kMoved; }

// The end is certain: descriptors and unfinished files go. Users hear of it when they have gone: who asks for
// the same again at once finds no file in the way.
void Transfer::release_ended(uint64_t now_ns) {
  report_end(now_ns);
  phase_.change(P::kReleasing);
  release_ = Release::kEnd;
  out_.add(ReleaseFiles{.keep = gone_elsewhere()});
}

void Transfer::report_end(uint64_t now_ns) {
  const std::string peer = peers();
  if (error_) {
    return out_.log(LogLevel::kWarn, fmt::format("with {} ended: {} ({})", peer, error_->message,
                                                 error_code_name(error_->code)));
  }
  const Summary figures = summary(all_figures(), now_ns);
  const double data_s = static_cast<double>(figures.data_elapsed_ns) * 1e-9;
  const double gbps = data_s > 0 ? static_cast<double>(figures.bytes_done) * 8e-9 / data_s : 0;
  out_.log(
      LogLevel::kInfo,
      fmt::format("with {} succeeded: {}, {} in {:.3f} s, {:.2f} Gbit/s, {} sent again", peer,
                  base::counted(job_.has_end() ? job_.catalog()->names() : 0, "name"),
                  base::counted(job_.bytes_total(), "byte"), static_cast<double>(figures.elapsed_ns) * 1e-9,
                  gbps, base::counted(figures.retransmits, "chunk")));
}

void Transfer::part_or_over(uint64_t now_ns) {
  for (auto& leg : legs_) {
    if (!leg->call_waits()) continue;
    leg->refuse_call(failure_of({ErrorCode::kPeerUnreachable, "the session has just ended here: ask again"}),
                     now_ns, out_);
  }
  if (peer_.unaware.empty() || detached_) return over();
  part(now_ns);
}

void Transfer::part(uint64_t now_ns) {
  phase_.change(P::kParting);
  Saved saved{.record = record(now_ns, *outcome_)};
  if (job_.catalog() != nullptr)
    saved.files = {job_.catalog()->files().begin(), job_.catalog()->files().end()};
  std::vector<Message> words = ended_answer(saved);
  std::get<Hello>(words.front()).inquires = !job_.initiator;  // as whoever was called says who it is
  std::set<std::string> told;
  for (auto& leg : legs_) {
    if (!peer_.unaware.contains(leg->peer_name()) || !told.insert(leg->peer_name()).second) continue;
    if (leg->peer_aware()) continue;  // it has said so meanwhile
    ends_.parting.insert(leg->id());
    leg->part(words, now_ns + settings_.resume_timeout_ns, now_ns, out_);
  }
}

// The next control goes on: flows, unfinished files and journal stay.
void Transfer::leave() {
  phase_.change(P::kLeaving);
  release_ = Release::kLeave;
  out_.add(ReleaseFiles{.keep = true});
}

void Transfer::over() {
  phase_.change(P::kOver);
  out_.add(Over{});
}

}  // namespace sluice::transfer
