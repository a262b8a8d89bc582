// SPDX-License-Identifier: Apache-2.0
#include "control/api/session_changes.h"

#include "control/proto/session_state.h"

namespace sluice::service {
namespace {

uint64_t names_seen(const api::Session& session) { return session.names().done() + session.names().failed(); }

}  // namespace

Result<std::vector<api::SessionEvent>> SessionChanges::look(const SessionManager& sessions, int64_t unix_ns) {
  unix_ns_ = unix_ns;
  std::vector<api::SessionEvent> events;
  std::vector<api::Session> all;
  if (id_.empty()) {
    all = look_at_all(sessions);
  } else {
    Result<api::Session> session = sessions.show(id_);
    if (!session) return session.error();
    all.push_back(std::move(*session));
  }
  for (const api::Session& session : all) {
    compare(session, &events);
    Known& known = known_[session.id()];
    const bool ended = api::has_ended(session);
    if (progress_ && !ended) tell_progress(session, &known, &events);
    ++known.looks;
    if (session.files_size() != 0) {
      compare_files(session, &known, &events);
    } else if (names_seen(session) != known.names_seen && known.looks >= kLooksForFiles) {
      if (const Result<api::Session> full = sessions.show(session.id()))
        compare_files(*full, &known, &events);
    }
    if (ended && id_.empty()) known_.erase(session.id());  // nothing more comes of it
    over_ = !id_.empty() && ended;
  }
  if (dropped_ != 0) {
    api::SessionEvent& dropped = events.emplace_back();
    dropped.set_unix_ns(unix_ns);
    dropped.set_event("dropped");
    dropped.set_dropped(std::exchange(dropped_, 0));
  }
  return events;
}

// Also one that has begun and ended since the last look.
std::vector<api::Session> SessionChanges::look_at_all(const SessionManager& sessions) {
  std::vector<api::Session> all = sessions.overviews();
  std::set<std::string> ended;
  for (std::string& id : sessions.ended()) {
    if (ended_ && !ended_->contains(id)) {
      if (Result<api::Session> session = sessions.show(id)) all.push_back(std::move(*session));
    }
    ended.insert(std::move(id));
  }
  ended_ = std::move(ended);
  return all;
}

void SessionChanges::compare(const api::Session& now, std::vector<api::SessionEvent>* out) {
  const auto found = known_.find(now.id());
  const bool fresh = found == known_.end();
  const api::Session before = fresh ? api::Session() : found->second.last;
  if (fresh || now.state() != before.state()) add("state", now, out);
  if (now.waiting_for() != before.waiting_for()) add("waiting", now, out);
  const bool rate_set = now.rate_limit_bps() != before.rate_limit_bps();
  if (rate_set || now.rate_state() != before.rate_state()) add("rate", now, out);
  const bool caused = !now.bottleneck().cause().empty() && now.bottleneck().cause() != "none";
  if (now.bottleneck().cause() != before.bottleneck().cause() &&
      (caused || !before.bottleneck().cause().empty()))
    add("bottleneck", now, out);
  if (now.error_code() != 0 && (now.error_code() != before.error_code() || now.error() != before.error()))
    add("error", now, out);
  api::Session& last = known_[now.id()].last;
  last = now;
  last.clear_files();
  last.clear_history();
}

void SessionChanges::tell_progress(const api::Session& now, Known* known,
                                   std::vector<api::SessionEvent>* out) {
  if (++known->quiet < kLooksForProgress) return;
  const bool moved = now.bytes_done() != known->bytes_told || now.has_rate_bps();
  if (!moved && now.queue_place() == known->place_told) return;
  known->quiet = 0;
  known->bytes_told = now.bytes_done();
  known->place_told = now.queue_place();
  add("progress", now, out);
}

void SessionChanges::compare_files(const api::Session& full, Known* known,
                                   std::vector<api::SessionEvent>* out) {
  known->looks = 0;
  known->names_seen = names_seen(full);
  known->files_done.resize(static_cast<size_t>(full.files_size()));
  for (int i = 0; i < full.files_size(); ++i) {
    const api::FileProgress& file = full.files(i);
    const auto at = static_cast<size_t>(i);
    const bool lost = api::has_ended(full) && !file.done();
    if (known->files_done[at] || (!file.done() && !lost)) continue;
    known->files_done[at] = true;
    const size_t before = out->size();
    add("file", full, out);
    if (out->size() != before) *out->back().mutable_file() = file;
  }
}

void SessionChanges::add(const char* event, const api::Session& session,
                         std::vector<api::SessionEvent>* out) {
  if (out->size() >= kEventsMax) return void(++dropped_);
  api::SessionEvent& one = out->emplace_back();
  one.set_unix_ns(unix_ns_);
  one.set_session(session.id());
  one.set_event(event);
  one.set_state(api::state_name(session));
  one.set_direction(session.direction());
  one.set_peer(session.peer());
  one.set_bytes_done(session.bytes_done());
  one.set_bytes_total(session.bytes_total());
  one.set_listing(session.listing());
  one.set_waiting_for(session.waiting_for());
  if (session.has_rate_bps()) one.set_rate_bps(session.rate_bps());
  one.set_rate_limit_bps(session.rate_limit_bps());
  one.set_chunks(session.chunks());
  one.set_retransmits(session.retransmits());
  one.set_lost(session.lost());
  one.set_rtt_us(session.rtt_us());
  one.set_queue_place(session.queue_place());
  one.set_queue_length(session.queue_length());
  one.set_user(session.user());
  one.set_from(session.from());
  one.set_rate_state(session.rate_state());
  *one.mutable_bottleneck() = session.bottleneck();
  one.set_error_code(session.error_code());
  one.set_error_name(session.error_name());
  one.set_error(session.error());
}

}  // namespace sluice::service
