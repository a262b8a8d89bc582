// How the effects of a transfer are performed in tests (transfer_fixture.h), and that whole transfers succeed
// so.
// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/transfer_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

namespace sluice::transfer::test {
namespace {

constexpr uint64_t kTickNs = 20 * kMillisecondNs;
constexpr size_t kStepsMax = 100'000;  // at one time: more would never end

std::string destination_of(const Scene& scene) {
  return scene.discard ? std::string(kNullDestination) : "in/";
}

Request request_of(const Scene& scene) {
  Request request{.options = scene.options, .destination = destination_of(scene)};
  request.options.lanes = scene.lanes;
  request.options.verify = scene.verify;
  request.options.priority = scene.priority;
  request.options.deadline_unix_ns = static_cast<int64_t>(scene.deadline_s * 1e9);
  request.options.deadline_policy = scene.deadline_policy;
  for (size_t i = 0; i < scene.sizes.size(); ++i) request.source_paths.push_back("f" + std::to_string(i));
  return request;
}

// The journal takes one entry after the other, and so does the board.
int writer_of(const Event& event) {
  if (std::holds_alternative<JournalWritten>(event)) return 1;
  return std::holds_alternative<FlowEvent>(event) || std::holds_alternative<FlowsReleased>(event) ? 2 : 0;
}

// The other way round, but for what one writer says.
std::vector<Event> reverse(std::vector<Event> events) {
  std::vector<Event> reversed(events.rbegin(), events.rend());
  for (const int writer : {1, 2}) {
    auto next = events.begin();
    for (Event& event : reversed) {
      if (writer_of(event) != writer) continue;
      next = std::find_if(next, events.end(), [&](const Event& each) { return writer_of(each) == writer; });
      event = *next++;
    }
  }
  return reversed;
}

}  // namespace

std::string name_of(const Scene& scene) {
  return std::string(scene.role == Role::kSource ? "source" : "destination") +
         (scene.initiator ? " that calls" : " that is called");
}

std::vector<Scene> every_scene() {
  return {{.role = Role::kSource, .initiator = true},
          {.role = Role::kSource, .initiator = false},
          {.role = Role::kDestination, .initiator = true},
          {.role = Role::kDestination, .initiator = false}};
}

World::World(Scene its_scene)
    : scene(std::move(its_scene)),
      peer(scene.role == Role::kSource ? Role::kDestination : Role::kSource, !scene.initiator,
           Content{scene.sizes}),
      content{scene.sizes} {
  peer.packs = scene.packs;
  peer.grows = scene.grows;
  peer.bare_end = scene.bare_end;
  lines_.resize(scene.legs);
  if (!scene.initiator) {
    transfer_ = std::make_unique<Transfer>(scene.settings, kId, "there", 1, now_ns);
    while (transfer_->legs() < scene.legs) transfer_->add_leg("there");
    return;
  }
  std::optional<std::vector<catalog::File>> sources;
  if (scene.opened) sources = first_files();
  transfer_ = std::make_unique<Transfer>(scene.settings, kId, "there", scene.role, request_of(scene),
                                         std::move(sources), 1, now_ns);
  while (transfer_->legs() < scene.legs) transfer_->add_leg("there");
}

// ---- what happens ------------------------------------------------------------------------------

World& World::start() {
  post(Begin{});
  attach();
  if (!scene.initiator) peer_calls(adopts_);
  // The peer calls for other legs once files are agreed upon.
  if (!scene.initiator && scene.legs > 1 && peer.known) peer_calls_again();
  return *this;
}

void World::post(const Event& event) {
  events_.push_back(event);
  if (!stepping_) run();
}

void World::run() {
  stepping_ = true;
  for (size_t steps = 0; !events_.empty() && !over; ++steps) {
    if (steps == kStepsMax) {
      ADD_FAILURE() << "it never comes to rest";
      break;
    }
    Event event = std::move(events_.front());
    events_.pop_front();
    step(std::move(event));
  }
  stepping_ = false;
}

void World::step(Event event) {
  if (auto* const of_flow = std::get_if<FlowEvent>(&event);
      of_flow != nullptr && of_flow->lane.value() < line(of_flow->leg).slots.size()) {
    of_flow->state = &line(of_flow->leg).slots[of_flow->lane.value()]->state;
  }
  if (std::holds_alternative<BoardAttached>(event)) attached_ = true;
  if (const auto* const call = std::get_if<CallEnded>(&event); call != nullptr && call->status) {
    for (const Message& word : std::exchange(line(call->leg).words, {})) send(word, call->leg);
  }
  for (const Effect& effect : transfer_->step(event, now_ns)) perform(effect);
  if (looks) (void)transfer_->view(now_ns);
  phases.insert(phase());
  leg_phases.insert(leg_phase());
  handshake_phases.insert(handshake_phase());
  for (uint32_t i = 0; attached_ && i < lines_.size(); ++i) {
    if (!std::exchange(lines_[i].claim, std::nullopt)) continue;
    if (!adopts_) lines_[i].slots.clear();
    events_.push_back(FlowsClaimed{.leg = LegId(i), .adopted = adopts_, .random = 7});
  }
}

void World::lose_board() {
  for (Line& each : lines_) each.slots.clear();
  attached_ = false;
  ++generation;
  post(BoardLost{});
}

void World::lose_stream(LegId leg) {
  if (!std::exchange(line(leg).stream, false)) return;
  forget_what_was_heard(leg);
  post(StreamEnded{.leg = leg, .reason = "as the test wants it"});
}

void World::peer_calls(bool renew, LegId leg) { peer_calls_with(peer.call(renew, leg.value())); }

void World::peer_calls_with(const Hello& hello) {
  line(LegId(hello.leg)).calls = true;
  post(PeerCalled{.leg = LegId(hello.leg), .hello = hello});
}

void World::peer_calls_again() {
  for (uint32_t i = 0; i < lines_.size() && !over; ++i) {
    if (!lines_[i].stream && (i == 0 || peer.known)) peer_calls(false, LegId(i));
  }
}

void World::close_flows(LegId leg) {
  for (uint32_t i = 0; i < line(leg).slots.size(); ++i)
    post(flow_event(board::EventKind::kFlowClosed, {.leg = leg, .lane = LaneId(i)}));
}

void World::tick() {
  for (uint32_t i = 0; i < lines_.size() && !over; ++i) {
    if (lines_[i].slots.empty()) continue;
    std::vector<const board::FlowSlot*> lanes;
    for (const auto& slot : lines_[i].slots) {
      slot->state.last_peer_ns = now_ns;  // the path is well
      lanes.push_back(slot.get());
    }
    post(Tick{.leg = LegId(i), .lanes = lanes});
  }
}

void World::pass(uint64_t ns) {
  const uint64_t until_ns = now_ns + ns;
  while (!over && now_ns < until_ns) {
    const uint64_t due_ns = transfer_->due_ns();
    uint64_t next_ns = std::min(until_ns, due_ns > now_ns ? due_ns : now_ns + kTickNs);
    const bool ticks = std::ranges::any_of(lines_, [](const Line& each) { return !each.slots.empty(); });
    if (ticks) next_ns = std::min(next_ns, now_ns + kTickNs);
    now_ns = next_ns;
    tick();
    if (over || transfer_->due_ns() > now_ns) continue;
    post(TimerDue{});
    if (over || transfer_->due_ns() > now_ns || std::exchange(spins_, true)) continue;
    ADD_FAILURE() << "it would be due again at once, for ever, in phase " << static_cast<int>(phase())
                  << " of the transfer, " << static_cast<int>(leg_phase()) << " of the leg";
  }
}

void World::restart(bool adopt, Recovered found) {
  events_.clear();
  held_.clear();
  plans_.clear();
  attached_ = over = false;
  for (uint32_t i = 0; i < lines_.size(); ++i) {
    lines_[i].stream = lines_[i].calls = false;
    lines_[i].claim.reset();
    if (!adopt || i > 0) lines_[i].slots.clear();  // one leg goes on with its flows
  }
  in_memory_.clear();
  listed_.reset();
  adopts_ = adopt;
  recovered = found;
  transfer_ = std::make_unique<Transfer>(scene.settings, journal, std::nullopt, now_ns);
}

// ---- what goes wrong ---------------------------------------------------------------------------

void World::fail(Entry entry, ErrorCode code, size_t skip) {
  plans_.push_back({.effect = kEffect<WriteJournal>,
                    .entry = entry,
                    .skip = skip,
                    .error = Error{code, "as the test wants it"}});
}

void World::hold(Entry entry, size_t skip) {
  plans_.push_back({.effect = kEffect<WriteJournal>, .entry = entry, .skip = skip});
}

void World::release(bool reversed) {
  plans_.clear();
  held_answer_.reset();
  held_from_.reset();
  std::vector<Event> late = std::exchange(held_, {});
  if (reversed) late = reverse(std::move(late));
  for (Event& event : late) {
    // A call that was taken, and has ended since, ended.
    if (auto* const call = std::get_if<CallEnded>(&event); call != nullptr && !line(call->leg).stream) {
      call->status = Error{ErrorCode::kPeerUnreachable, "it has ended meanwhile"};
    }
    post(event);
  }
}

void World::release_one_after_the_other() {
  while (!held_.empty()) {
    const Event event = held_.front();
    held_.erase(held_.begin());
    post(event);
  }
}

std::optional<World::Plan> World::plan_of(const Effect& effect) {
  const auto* const written = std::get_if<WriteJournal>(&effect);
  for (auto plan = plans_.begin(); plan != plans_.end(); ++plan) {
    if (plan->effect != effect.index()) continue;
    if (plan->entry && *plan->entry != written->entry) continue;
    if (plan->skip-- != 0) return std::nullopt;
    const Plan chosen = *plan;
    plans_.erase(plan);
    return chosen;
  }
  return std::nullopt;
}

// ---- effects -----------------------------------------------------------------------------------

void World::perform(const Effect& effect) {
  ++counts_[effect.index()];
  on_effect(effect);
  if (const auto* log = std::get_if<Log>(&effect)) logs.push_back(log->text);
  if (const auto* command = std::get_if<CommandLane>(&effect)) return work(command->command);
  if (const auto* set = std::get_if<SetRate>(&effect)) rates[set->lane] = set->rate_bps;
  if (std::holds_alternative<Log>(effect) || std::holds_alternative<SetRate>(effect)) return;
  EXPECT_FALSE(over) << "nothing is wanted after Over";
  effects.push_back(effect);
  if (const auto* written = std::get_if<WriteJournal>(&effect)) {
    ++entry_counts_[static_cast<size_t>(written->entry)];
  }
  std::optional<Plan> plan = plan_of(effect);
  const size_t number = answers;
  std::optional<Error> error = plan ? plan->error : std::nullopt;
  if (failed_answer_ == number) error = Error{ErrorCode::kStorage, "as the test wants it"};
  const std::optional<Event> event = answer(effect, error);
  if (!event) return;
  ++answers;
  const bool hold = (plan && !plan->error) || held_answer_ == number || (held_from_ && number >= *held_from_);
  if (hold) {
    held_.push_back(*event);
  } else {
    events_.push_back(*event);
  }
}

std::optional<Event> World::answer(const Effect& effect, const std::optional<Error>& error) {
  const Status status = error ? Status(*error) : Status();
  if (const auto* call = std::get_if<Call>(&effect)) {
    if (error || !reachable) {
      return CallEnded{.leg = call->leg,
                       .status = error.value_or(Error{ErrorCode::kPeerUnreachable, "nobody"})};
    }
    line(call->leg).stream = true;
    line(call->leg).words = call->words;
    return CallEnded{.leg = call->leg};
  }
  if (const auto* taken = std::get_if<TakeCall>(&effect)) {
    forget_what_was_heard(taken->leg);
    EXPECT_TRUE(std::exchange(line(taken->leg).calls, false)) << "a call that waits is taken";
    line(taken->leg).stream = true;
    if (!peer.last_words.empty()) say({peer.last_words.begin() + 1, peer.last_words.end()}, taken->leg);
  } else if (const auto* refusal = std::get_if<RefuseCall>(&effect)) {
    EXPECT_TRUE(std::exchange(line(refusal->leg).calls, false)) << "a call that waits is refused";
    refused.push_back(refusal->word);
  } else if (const auto* sent = std::get_if<Send>(&effect)) {
    send(sent->message, sent->leg);
  } else if (const auto* hang_up = std::get_if<HangUp>(&effect)) {
    line(hang_up->leg).stream = false;
    forget_what_was_heard(hang_up->leg);
  } else if (const auto* written = std::get_if<WriteJournal>(&effect)) {
    if (!error) write(written->batch);
    return JournalWritten{
        .entry = written->entry, .object = written->object, .status = status, .of_leg = written->of_leg};
  } else if (std::holds_alternative<Over>(effect)) {
    over = true;
  } else if (std::optional<Event> event = answer_of_board(effect, status)) {
    return event;
  } else {
    return answer_of_files(effect, status);
  }
  return std::nullopt;
}

// ---- the peer ----------------------------------------------------------------------------------

void World::send(const Message& message, LegId leg) {
  if (!line(leg).stream) return;
  said_.push_back(message);
  say(peer.hear(message, leg.value()), leg);
  if (peer.take_leave()) return lose_stream(leg);
  if (data) arrive();
}

void World::say(std::vector<Message> words, LegId leg) {
  for (Message& word : words) {
    if (mute.contains(std::string(message_name(word)))) continue;
    twist(word);
    events_.push_back(Received{.leg = leg, .message = std::move(word)});
  }
}

// What was on its way is not heard any more.
void World::forget_what_was_heard(LegId leg) {
  std::erase_if(events_, [leg](const Event& event) {
    const auto* const heard = std::get_if<Received>(&event);
    const auto* const ended = std::get_if<StreamEnded>(&event);
    return (heard != nullptr && heard->leg == leg) || (ended != nullptr && ended->leg == leg);
  });
}

bool World::logged(std::string_view words) const {
  return std::any_of(logs.begin(), logs.end(),
                     [words](const std::string& line) { return line.find(words) != std::string::npos; });
}

std::optional<ErrorCode> World::error() const {
  const std::optional<Error> error = transfer_->view(now_ns).error;
  return error ? std::optional(error->code) : std::nullopt;
}

// ---- whole transfers ---------------------------------------------------------------------------

TEST(WholeTransfer, SucceedsInEitherRoleCallingOrCalled) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    World world(scene);
    world.start();
    EXPECT_TRUE(world.over);
    EXPECT_EQ(world.error(), std::nullopt) << world.transfer().error()->message;
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
    EXPECT_EQ(world.journal.record.state, RecordState::kSucceeded);
  }
}

}  // namespace sluice::transfer::test
