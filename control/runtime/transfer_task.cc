// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/transfer_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "control/runtime/acts_for.h"
#include "control/words/place_text.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::runtime {

transfer::ThisNode this_node(const config::Node& node) {
  transfer::ThisNode its{{.node_name = node.name,
                          .udp_checksum_always = node.udp_checksum == "always",
                          .protection = node.transfer.protection,
                          .calls_only = node.calls_only(),
                          .partition_bytes = node.partition_bytes,
                          .sync_lag_bytes = node.sync_lag_bytes,
                          .sync_lag_ns = node.sync_lag_ms * transfer::kMillisecondNs,
                          .connect_timeout_ns = node.connect_timeout_s * transfer::kSecondNs,
                          .stall_timeout_ns = node.stall_timeout_s * transfer::kSecondNs,
                          .resume_timeout_ns = node.resume_timeout_s * transfer::kSecondNs,
                          .keep_ns = node.keep_timeout_s * transfer::kSecondNs,
                          .digests_known = digests::available(),
                          .trust_journal = node.reread == "never"}};
  // One place is kept for the sessions of others.
  its.outlook = std::make_shared<deadline::Outlook>(std::max<uint32_t>(1, node.sessions_max - 1));
  return its;
}

TransferTask::TransferTask(std::shared_ptr<Services> services, std::unique_ptr<transfer::Transfer> transfer,
                           gather::OpenSources sources, OnChange changed)
    : services_(std::move(services)),
      transfer_(std::move(transfer)),
      changed_(std::move(changed)),
      sources_(std::move(sources)),
      journal_(services_->pool.serial()),
      timer_(services_->io) {}

TransferTask::~TransferTask() = default;

void TransferTask::start() {
  DCHECK(files_ == nullptr && legs_.empty(), "a task starts once");
  DCHECK(transfer_->legs() != 0, "a transfer has a leg");
  files_ = std::make_shared<TransferFiles>(services_, weak_from_this(), *transfer_, std::move(sources_));
  objects_ = std::make_unique<BoardObjects>(services_, weak_from_this(), files_);
  for (uint32_t i = 0; i < transfer_->legs(); ++i) {
    const transfer::LegId id(i);
    legs_.push_back({.stream = std::make_unique<LegStream>(services_, weak_from_this(), id,
                                                           transfer_->leg(id).peer_name()),
                     .flows = nullptr});
    Leg& leg = legs_.back();
    leg.flows =
        std::make_unique<LegFlows>(services_, weak_from_this(), id, transfer_->id(), *leg.stream, *objects_);
  }
  // What a former control left is claimed with the first step, before the board is heard of.
  post(transfer::Begin{.at_once = services_->places.queue().waiting() == 0});
  files_->rejoin();
  for (const Leg& leg : legs_) {
    if (!over_) leg.flows->join();
  }
  if (!over_) objects_->join();
}

void TransferTask::peer_called(std::shared_ptr<peer::Connection> connection, const transfer::Hello& hello) {
  const std::optional<transfer::LegId> leg = transfer_->leg_to(connection->peer().name, hello.leg);
  DCHECK(leg, "a call for a leg that there is not was refused");
  if (leg) legs_[leg->value()].stream->peer_called(std::move(connection), hello);
}

// ---- events in, effects out --------------------------------------------------------------------

void TransferTask::post(transfer::Event event) {
  if (over_) return;
  events_.push_back(std::move(event));
  if (!stepping_) run();
}

void TransferTask::run() {
  DCHECK(!stepping_, "one event is stepped after the other");
  const auto self = shared_from_this();  // whoever hears of the change may let go of it
  const async::TurnMeter::Scope scope(*services_->turns, "a transfer");
  stepping_ = true;
  while (!events_.empty() && !over_) {
    const transfer::Event event = std::move(events_.front());
    events_.pop_front();
    const std::vector<transfer::Effect> effects = transfer_->step(event, async::monotonic_ns());
    // Before its peer hears of that, who may begin the next.
    if (transfer_->job().complete() || transfer_->ended()) services_->quotas.leave(transfer_->id());
    for (const transfer::Effect& effect : effects) {
      DCHECK(!over_, "Over is the last effect of a transfer");
      dispatch(effect);
    }
  }
  stepping_ = false;
  DCHECK(transfer_->ended() || !told_ended_, "an end is final");
  arm();
  if (over_ || transfer_->ended() != told_ended_) {
    told_ended_ = transfer_->ended();
    if (told_ended_) services_->logs.ended(transfer_->id());
    changed_(*this);
  }
}

void TransferTask::arm() {
  const uint64_t due_ns = transfer_->due_ns();
  if (over_) {
    timer_.cancel();
    return;
  }
  if (due_ns == timer_ns_) return;
  timer_ns_ = due_ns;
  if (due_ns == UINT64_MAX) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due_ns)));
  timer_.async_wait([weak = weak_from_this(), due_ns](const asio::error_code& error) {
    const auto self = weak.lock();
    if (error || !self || self->timer_ns_ != due_ns) return;
    self->timer_ns_ = UINT64_MAX;
    self->post(transfer::TimerDue{});
  });
}

TransferTask::Leg& TransferTask::leg(transfer::LegId id) {
  DCHECK(id.value() < legs_.size(), "an effect is of a leg that there is");
  return legs_[id.value()];
}

void TransferTask::dispatch(const transfer::Effect& effect) {
  std::visit(
      [this](const auto& e) {
        using E = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<E, transfer::Over>) {
          over_ = true;
        } else if constexpr (requires { perform(e); }) {
          perform(e);
        } else if constexpr (requires(TransferFiles & files) { files.perform(e); }) {
          files_->perform(e);
        } else if constexpr (requires(LegStream & stream) { stream.perform(e); }) {
          leg(e.leg).stream->perform(e);
        } else if constexpr (requires { e.leg; }) {
          leg(e.leg).flows->perform(e);
        } else {
          objects_->perform(e);
        }
      },
      effect);
}

void TransferTask::perform(const transfer::OpenObject& effect) {
  DCHECK(files_, "a task has started");
  files_->make_ready(effect.object, [self = shared_from_this(), effect](Status status) {
    if (status) return self->objects_->perform(effect);
    self->post(transfer::ObjectOpened{.object = effect.object, .status = std::move(status)});
  });
}

void TransferTask::perform(const transfer::CloseObject& effect) {
  files_->closed(effect.object);
  objects_->perform(effect);
}

void TransferTask::perform(const transfer::WriteJournal& effect) {
  services_->pool.run_on(
      journal_,
      [services = services_, id = transfer_->id(), batch = effect.batch, durability = effect.durability] {
        return services->journal->write(id, batch, durability);
      },
      [self = shared_from_this(), entry = effect.entry, object = effect.object,
       of_leg = effect.of_leg](Status status) {
        self->written_ = status;
        self->post(transfer::JournalWritten{
            .entry = entry, .object = object, .status = std::move(status), .of_leg = of_leg});
      });
}

asio::awaitable<Status> TransferTask::journal_settled() {
  const auto self = shared_from_this();
  auto work = [] { return true; };
  co_await services_->pool.wait_on(journal_, std::move(work));
  co_return written_;
}

// ---- its place among the sessions of this node -------------------------------------------------

std::string TransferTask::caller() const { return acts_for(*transfer_); }

void TransferTask::perform(const transfer::AskPlace& effect) {
  services_->places.ask(transfer_->id(), caller(), effect, weak_from_this());
}

void TransferTask::perform(const transfer::TakePlace&) {
  services_->places.take(transfer_->id(), caller(), transfer_->job().share());
}

void TransferTask::perform(const transfer::LeavePlace& effect) {
  if (effect.for_now) {
    services_->places.step_aside(transfer_->id());
  } else {
    services_->places.leave(transfer_->id());
  }
}

transfer::View TransferTask::view() const {
  transfer::View view = transfer_->view(async::monotonic_ns());
  const uint64_t waited_ns = services_->held_up_ns(view.id, async::monotonic_ns());
  if (waited_ns >= kHeldUpNs && view.state != transfer::ViewState::kTransferring) {
    const std::string& key = files_->key();
    view.waiting_for = fmt::format("{}, whose file system has let a call wait for {} s",
                                   key.empty() ? "its export" : "export " + key, waited_ns / 1'000'000'000);
    return view;
  }
  const node::SessionQueue& queue = services_->places.queue();
  DCHECK(!queue.runs(view.id) || queue.place(view.id) == 0, "whoever runs does not wait");
  if (view.state != transfer::ViewState::kQueued || queue.place(view.id) == 0) return view;
  view.queue.place = queue.place(view.id);
  view.queue.length = queue.waiting();
  view.waiting_for += ": " + transfer::place_text(view.queue.place, view.queue.length);
  return view;
}

void TransferTask::look_at_files() {
  const bool now = !over_ && services_->held_up_ns(transfer_->id(), async::monotonic_ns()) >= kHeldUpNs;
  for (const Leg& leg : legs_) {
    if (now) leg.flows->lend_buffers();
  }
  if (now == held_up_) return;
  held_up_ = now;
  services_->places.set_held_up(transfer_->id(), now);
}

std::vector<board::FlowGrant> TransferTask::lanes() const {
  std::vector<board::FlowGrant> lanes;
  for (const Leg& leg : legs_) {
    const std::vector<board::FlowGrant> more = leg.flows->lanes();
    lanes.insert(lanes.end(), more.begin(), more.end());
  }
  return lanes;
}

void TransferTask::perform(const transfer::Log& effect) const {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  log::of(log::kSession)
      ->log(kLevels[static_cast<size_t>(effect.level)], "{}: {}", transfer_->log_name(), effect.text);
}

}  // namespace sluice::runtime
