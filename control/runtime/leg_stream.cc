// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/leg_stream.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>

#include "control/peer/codec.h"
#include "control/runtime/standing.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::runtime {
namespace {

constexpr auto kFlushTimeout = std::chrono::seconds(2);

}  // namespace

asio::awaitable<void> hang_up(asio::io_context& io, std::shared_ptr<peer::Connection> connection) {
  auto timer = std::make_shared<asio::steady_timer>(io, kFlushTimeout);
  timer->async_wait([connection, timer](const asio::error_code& error) {
    if (!error) connection->close();
  });
  co_await connection->flush();
  timer->cancel();
  connection->close();
}

LegStream::LegStream(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue, transfer::LegId leg,
                     std::string peer_name)
    : services_(std::move(services)),
      queue_(std::move(queue)),
      leg_(leg),
      peer_name_(std::move(peer_name)),
      dialled_{.connection = nullptr, .timer = asio::steady_timer(services_->io)} {}

LegStream::~LegStream() {
  *self_ = nullptr;
  end(stream_);
  end(call_);
  drop_dialled();
}

void LegStream::post(transfer::Event event) { post_to(queue_, std::move(event)); }

std::optional<transfer::FlowSecret> LegStream::flow_secret(std::string_view session_id, uint64_t flow_id,
                                                           LaneId lane) const {
  const auto context = transfer::flow_secret_context(session_id, flow_id, lane);
  transfer::FlowSecret secret;
  if (!stream_ || !context ||
      !stream_->connection->export_secret(transfer::kFlowSecretLabel, *context, secret.bytes)) {
    return std::nullopt;
  }
  return secret;
}

// ---- connections -------------------------------------------------------------------------------

LegStream::LinePtr LegStream::begin(std::shared_ptr<peer::Connection> connection, Use use) {
  connection->set_stage(peer::Stage::kGreeting);
  auto line = std::make_shared<Line>(Line{.connection = std::move(connection), .use = use});
  asio::co_spawn(services_->io, read(self_, line), asio::detached);
  return line;
}

void LegStream::end(LinePtr& line) {
  if (!line) return;
  line->use = Use::kGone;
  line->unread.clear();
  line->connection->set_stage(peer::Stage::kOver);
  asio::co_spawn(services_->io, hang_up(services_->io, line->connection), asio::detached);
  line.reset();
}

asio::awaitable<void> LegStream::read(std::shared_ptr<LegStream*> self, LinePtr line) {
  const std::shared_ptr<peer::Connection> connection = line->connection;
  for (;;) {
    Result<peer::PeerMessage> received = co_await connection->receive();
    if (line->use == Use::kGone || *self == nullptr) {
      if (!received) co_return;
      continue;  // read and dropped, so that our last words are not lost to a reset
    }
    if (!(*self)->handle(line, std::move(received))) co_return;
  }
}

bool LegStream::handle(const LinePtr& line, Result<peer::PeerMessage> received) {
  DCHECK(line == (line->use == Use::kCall ? call_ : stream_),
         "whoever is heard is this leg's call or stream");
  if (!received) {
    const bool waited = line->use == Use::kCall;
    line->use = Use::kGone;
    if (line == call_) call_.reset();
    if (line == stream_) stream_.reset();
    if (waited) {
      post(transfer::CallLost{.leg = leg_});
    } else {
      post(transfer::StreamEnded{.leg = leg_, .reason = received.error().message});
    }
    return false;
  }
  std::optional<transfer::Message> message = peer::from_wire(*received);
  if (!message) {
    log::of(log::kSession)->debug("{} said something that this version does not know", peer_name_);
    return true;
  }
  if (line->use == Use::kStream) {
    if (std::holds_alternative<transfer::Hello>(*message)) line->connection->set_stage(peer::Stage::kSession);
    post(transfer::Received{.leg = leg_, .message = std::move(*message)});
  } else if ((line->unread_bytes += transfer::memory_bytes(*message)) <= kUnreadBytesMax) {
    line->unread.push_back(std::move(*message));
  } else {
    line->connection->close();
  }
  return true;
}

void LegStream::peer_called(std::shared_ptr<peer::Connection> connection, const transfer::Hello& hello) {
  end(call_);
  call_ = begin(std::move(connection), Use::kCall);
  post(transfer::PeerCalled{.leg = leg_, .hello = hello});
}

void LegStream::drop_stream(const std::string& reason) {
  if (!stream_) return;
  end(stream_);
  post(transfer::StreamEnded{.leg = leg_, .reason = reason});
}

// ---- effects -----------------------------------------------------------------------------------

void LegStream::perform(const transfer::Call& effect) {
  DCHECK(calling_ == 0, "one call at a time");
  calling_ = ++calls_;
  std::vector<peer::PeerMessage> words;
  for (const transfer::Message& word : effect.words) words.push_back(peer::to_wire(word));
  if (dialled_.number != 0) return words_->say(std::move(words));
  if (dialled_.connection) {
    for (const peer::PeerMessage& word : words) (void)dialled_.connection->send(word);
    dialled_.timer.cancel();
    return took(std::exchange(dialled_.connection, nullptr));
  }
  words_ = std::make_shared<peer::FirstWords>(std::move(words));
  begin_call(calling_, words_);
}

void LegStream::perform(const transfer::Dial&) {
  DCHECK(calling_ == 0 && dialled_.number == 0 && !stream_, "what is dialled for is the first call");
  dialled_.number = ++calls_;
  words_ = std::make_shared<peer::FirstWords>();
  begin_call(dialled_.number, words_);
}

void LegStream::begin_call(uint64_t number, std::shared_ptr<peer::FirstWords> words) {
  asio::co_spawn(services_->io, call(services_, self_, peer_name_, number, std::move(words)), asio::detached);
}

asio::awaitable<void> LegStream::call(std::shared_ptr<Services> services, std::shared_ptr<LegStream*> self,
                                      std::string peer_name, uint64_t number,
                                      std::shared_ptr<peer::FirstWords> words) {
  const Result<identity::Standing> standing = co_await standing_now(services);
  const Result<identity::Peer> peer =
      standing ? standing->trust->find(peer_name) : Result<identity::Peer>(standing.error());
  if (!peer) {
    if (*self != nullptr) (*self)->called(number, peer.error());
    co_return;
  }
  peer::OnOffer on_offer = [services](identity::Offer offer) { remember_offer(*services, std::move(offer)); };
  Result<std::unique_ptr<peer::Connection>> connected = co_await peer::connect(
      *standing, *peer, kConnectTimeoutMs, services->frames, std::move(on_offer), std::move(words));
  if (*self != nullptr) (*self)->called(number, std::move(connected));
}

// The call has come meanwhile, or comes soon. One that comes later makes a connection of its own.
void LegStream::dialled(Result<std::unique_ptr<peer::Connection>> connected) {
  dialled_.number = 0;
  if (calling_ != 0) return called(calling_, std::move(connected));
  if (!connected) return;
  dialled_.connection = std::move(*connected);
  dialled_.timer.expires_after(kDialledFor);
  dialled_.timer.async_wait([self = self_](const asio::error_code& error) {
    if (!error && *self != nullptr) (*self)->drop_dialled();
  });
}

void LegStream::drop_dialled() {
  dialled_.number = 0;
  dialled_.timer.cancel();
  if (!dialled_.connection) return;
  asio::co_spawn(services_->io, hang_up(services_->io, std::exchange(dialled_.connection, nullptr)),
                 asio::detached);
}

void LegStream::called(uint64_t number, Result<std::unique_ptr<peer::Connection>> connected) {
  if (number == dialled_.number) return dialled(std::move(connected));
  if (number != calling_) return;  // hung up meanwhile, and answered
  if (connected) return took(std::move(*connected));
  call_failed(connected.error());
}

void LegStream::call_failed(Error error) {
  calling_ = 0;
  const bool said = std::exchange(words_, nullptr)->said();
  post(transfer::CallEnded{.leg = leg_, .status = std::move(error), .said = said});
}

void LegStream::took(std::shared_ptr<peer::Connection> connection) {
  calling_ = 0;
  words_ = nullptr;
  end(stream_);  // a leg has one stream
  stream_ = begin(std::move(connection), Use::kStream);
  post(transfer::CallEnded{.leg = leg_, .rtt_ns = stream_->connection->rtt_ns()});
}

void LegStream::perform(const transfer::TakeCall&) {
  end(stream_);
  stream_ = std::exchange(call_, nullptr);
  if (!stream_) return post(transfer::StreamEnded{.leg = leg_, .reason = "the call has ended"});
  stream_->use = Use::kStream;
  stream_->connection->set_stage(peer::Stage::kSession);
  for (transfer::Message& message : std::exchange(stream_->unread, {}))
    post(transfer::Received{.leg = leg_, .message = std::move(message)});
}

void LegStream::perform(const transfer::RefuseCall& effect) {
  if (!call_) return;
  (void)call_->connection->send(peer::to_wire(effect.word));
  end(call_);
}

void LegStream::perform(const transfer::Send& effect) {
  if (!stream_) return;
  const Status sent = stream_->connection->send(peer::to_wire(effect.message));
  // The reader hears of it.
  if (!sent && sent.error().code == ErrorCode::kResources) {
    log::of(log::kSession)->warn("{}", sent.error().message);
    stream_->connection->close();
  }
}

void LegStream::perform(const transfer::HangUp&) {
  end(stream_);
  drop_dialled();
  if (calling_ != 0) call_failed({ErrorCode::kPeerUnreachable, "hung up"});
}

}  // namespace sluice::runtime
