// sluice probe integrity: whether what is sent arrives unchanged, looked at for as long as it takes.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "tools/cli/app.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/probe_file.h"
#include "tools/cli/probe_report.h"
#include "tools/cli/probe_sessions.h"
#include "tools/cli/probe_state.h"
#include "tools/cli/target.h"
#include "tools/cli/transfer_flags.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kTransferBytes = uint64_t{4} << 20;
constexpr uint64_t kTransferBytesMax = uint64_t{1} << 30;  // made in memory
constexpr uint32_t kPacketBytes = 1400;
constexpr uint32_t kEchoesOfSession = 1U << 14;  // what is done again after an interruption
constexpr const char* kPacketRate = "10M";
constexpr uint32_t kUnfinishedMax = 5;  // sessions in a row that tell of no end of their datagrams
constexpr double kPatienceS = 3600;
constexpr double kKeepEveryS = 5;    // between two states on the disk
constexpr double kTellEveryS = 60;   // where nobody looks at a line that changes
constexpr double kShowEveryS = 0.3;  // where somebody does

struct ProbeFlags {
  std::string peer;
  uint64_t transfers = 0;
  uint64_t packets = 0;
  std::string bytes;
  uint32_t size = 0;
  std::string state;
  bool restart = false;
  bool quiet = false;
  double patience_s = kPatienceS;
  TransferFlags transfer;

  bool reflects() const { return packets != 0; }
  uint64_t asked() const { return reflects() ? packets : transfers; }
  const char* kind() const { return reflects() ? kPackets : kTransfers; }
};

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

class Integrity {
 public:
  Integrity(const Context& context, const ProbeFlags& flags, ProbeStateFile file, ProbeState state,
            ProbeSessions& sessions)
      : context_(context),
        flags_(flags),
        file_(std::move(file)),
        state_(std::move(state)),
        sessions_(sessions),
        tried_before_(state_.tried_again),
        elapsed_before_s_(state_.elapsed_s) {}

  Result<int> run() {
    Status ended;
    if (state_.done < flags_.asked()) ended = flags_.reflects() ? packets() : transfers();
    clear_line();
    if (const Status kept = keep(); !kept && ended) ended = kept;
    context_.print(probe_json(state_, flags_.asked()), probe_text(state_, flags_.asked()));
    if (!ended && ended.error().code != ErrorCode::kCancelled) return ended.error();
    if (!ended) {
      context_.environment.err << "sluice: " << printable(ended.error().message)
                               << "; the same command resumes\n"
                               << std::flush;
      return static_cast<int>(ErrorCode::kCancelled);
    }
    if (state_.wrong == 0) return 0;
    context_.environment.err << fmt::format("sluice: {} of {} {} are wrong\n", state_.wrong, state_.came(),
                                            flags_.reflects() ? "datagrams that came back" : "transfers")
                             << std::flush;
    return static_cast<int>(ErrorCode::kIntegrity);
  }

 private:
  Result<api::SendRequest> request_of(const std::string& source) const {
    TransferFlags transfer = flags_.transfer;
    transfer.literal = true;
    transfer.paths = {source, flags_.peer + ":null:"};
    if (flags_.reflects()) {
      if (transfer.values["rate_bps"].empty()) transfer.values["rate_bps"] = kPacketRate;
      if (transfer.values["mode"].empty()) transfer.values["mode"] = "fixed";
    }
    auto request =
        transfer_request(Direction::kSend, transfer, context_.environment.working_directory, nullptr);
    if (!request) return request.error();
    api::SendRequest& send = std::get<api::SendRequest>(*request);
    send.mutable_options()->set_crc("crc64");
    send.mutable_options()->set_on_error("fail");
    return send;
  }

  // Of a session whose end says something about the data.
  Result<api::Session> session_of(const api::SendRequest& request) {
    const uint64_t left = flags_.asked() - state_.done;
    auto session = sessions_.run(api::TransferRequest(request), [this, left](const api::Session& now) {
      show(std::min(left, now.echoes().sent()));
    });
    state_.tried_again = tried_before_ + sessions_.tried_again();
    if (!session) return session.error();
    const int code = exit_code_of(*session);
    if (code == 0 || code == static_cast<int>(ErrorCode::kIntegrity)) return session;
    return Error{static_cast<ErrorCode>(code),
                 session->error().empty() ? "somebody has cancelled the session" : session->error()};
  }

  Status transfers() {
    ProbeFile content(state_.bytes);
    if (Status made = content.make(context_.environment.working_directory); !made) return made;
    const auto request = request_of(content.path().string());
    if (!request) return request.error();
    while (state_.done < flags_.asked()) {
      const auto digest = content.renew();
      if (!digest) return digest.error();
      const auto session = session_of(*request);
      if (!session) return session.error();
      const std::string problem = take_transfer(*digest, *session, unix_now_ns(), &state_);
      if (!problem.empty()) tell(fmt::format("transfer {}: {}", state_.done, problem));
      if (Status kept = keep_now_and_then(!problem.empty()); !kept) return kept;
    }
    return {};
  }

  Status packets() {
    auto request = request_of("memory:1");
    if (!request) return request.error();
    api::TransferOptions& options = *request->mutable_options();
    options.set_echo_bytes(static_cast<uint32_t>(state_.bytes));
    options.set_chunk_bytes(std::max<uint32_t>(wire::kChunkBytesMin, (options.echo_bytes() + 3) / 4 * 4));
    uint32_t unfinished = 0;
    while (state_.done < flags_.asked()) {
      options.set_echoes(
          static_cast<uint32_t>(std::min<uint64_t>(kEchoesOfSession, flags_.asked() - state_.done)));
      const auto session = session_of(*request);
      if (!session) return session.error();
      if (session->chunk_bytes() < state_.bytes)
        return usage(fmt::format("--size {}: the two ports and the path between them carry {} bytes at most",
                                 state_.bytes, session->chunk_bytes()));
      // Flows that were begun anew have sent some of them twice, and a control that was begun anew knows of
      // none.
      if (!session->echoes().over() || session->echoes().sent() != options.echoes()) {
        state_.tried_again = ++tried_before_ + sessions_.tried_again();
        tell(fmt::format("session {} was begun anew meanwhile, and does not count", session->id()));
        if (++unfinished == kUnfinishedMax)
          return Error{
              ErrorCode::kStalled,
              fmt::format("{} sessions in a row were begun anew; see 'sluice session show {}' and the logs "
                          "of both nodes",
                          unfinished, session->id())};
        continue;
      }
      unfinished = 0;
      const uint64_t wrong = take_echoes(*session, unix_now_ns(), &state_);
      if (wrong != 0)
        tell(fmt::format("{} of the last {} datagrams came back wrong", wrong, options.echoes()));
      if (Status kept = keep_now_and_then(true); !kept) return kept;
    }
    return {};
  }

  Status keep() {
    state_.elapsed_s = elapsed_before_s_ + seconds_since(began_);
    state_.changed_unix_ns = unix_now_ns();
    kept_at_ = Clock::now();
    return file_.write(state_text(state_));
  }
  Status keep_now_and_then(bool now) {
    show(0);
    return now || seconds_since(kept_at_) >= kKeepEveryS ? keep() : Status();
  }

  // ---- what is told meanwhile ----------------------------------------------------------------------

  void clear_line() {
    if (shown_) context_.environment.err << "\r\x1b[K" << std::flush;
    shown_ = false;
  }
  void tell(const std::string& line) {
    clear_line();
    context_.environment.err << "sluice: " << printable(line) << "\n" << std::flush;
  }
  void show(uint64_t under_way) {
    Environment& environment = context_.environment;
    const bool line = environment.err_is_terminal;
    if (flags_.quiet || seconds_since(shown_at_) < (line ? kShowEveryS : kTellEveryS)) return;
    shown_at_ = Clock::now();
    const std::string text = probe_progress(state_, flags_.asked(), under_way);
    environment.err << (line ? "\r\x1b[K" + text : text + "\n") << std::flush;
    shown_ = line;
  }

  const Context& context_;
  const ProbeFlags& flags_;
  ProbeStateFile file_;
  ProbeState state_;
  ProbeSessions& sessions_;
  uint64_t tried_before_;
  const double elapsed_before_s_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point kept_at_ = began_;
  Clock::time_point shown_at_ = began_;
  bool shown_ = false;
};

Result<uint64_t> bytes_of(const ProbeFlags& flags) {
  if (flags.reflects()) {
    if (!flags.bytes.empty()) return usage("--bytes: of --transfers; datagrams have a --size");
    return flags.size == 0 ? kPacketBytes : flags.size;
  }
  if (flags.size != 0) return usage("--size: of --packets; files have --bytes");
  if (flags.bytes.empty()) return kTransferBytes;
  const auto bytes = config::parse_size(flags.bytes);
  if (!bytes) return usage("--bytes: " + bytes.error().message);
  if (*bytes == 0 || *bytes > kTransferBytesMax)
    return usage(fmt::format("--bytes {}: give 1 byte to {}", flags.bytes, format_bytes(kTransferBytesMax)));
  return bytes;
}

// What an earlier run has found, if it is of the same probe.
Result<ProbeState> resumed(const ProbeStateFile& file, const std::filesystem::path& path,
                           const ProbeFlags& flags, ProbeState fresh) {
  if (flags.restart || file.text().empty()) return fresh;
  auto before = read_state(file.text());
  if (!before) return usage(printable(path.string()) + ": " + before.error().message);
  if (before->done == 0) return fresh;
  if (!before->same_probe(fresh))
    return usage(
        fmt::format("{}: of another probe ({} of {} to {}, by the node in {}); name another with --state, or "
                    "give --restart",
                    printable(path.string()), printable(before->kind), format_bytes(before->bytes),
                    printable(before->peer), printable(before->node_directory)));
  return before;
}

Result<int> integrity(const Context& context, const ProbeFlags& flags) {
  if (flags.peer.find(':') != std::string::npos)
    return usage(printable(flags.peer) + ": give a node alone; nothing is written there");
  if (flags.asked() == 0)
    return usage(
        "give --transfers N, for files whose digests are compared, or --packets N, for datagrams that the "
        "other node reflects");
  const auto bytes = bytes_of(flags);
  if (!bytes) return bytes.error();
  const std::filesystem::path path = flags.state.empty()
                                         ? usual_probe_state_file(flags.peer, flags.kind())
                                         : context.environment.working_directory / flags.state;
  if (path.empty()) return usage("no place for what is found: HOME is not set; name a file with --state");
  ProbeState fresh;
  fresh.node_directory = context.node_directory().lexically_normal().string();
  fresh.peer = flags.peer;
  fresh.kind = flags.kind();
  fresh.bytes = *bytes;
  fresh.began_unix_ns = unix_now_ns();
  Canceller canceller(context.environment);
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  auto file = ProbeStateFile::open(path);
  if (!file) return file.error();
  auto state = resumed(*file, path, flags, std::move(fresh));
  if (!state) return state.error();
  ProbeSessions sessions(context, canceller, flags.patience_s);
  return Integrity(context, flags, std::move(*file), std::move(*state), sessions).run();
}

void add_integrity_flags(CLI::App& command, ProbeFlags& flags) {
  command.add_option("node", flags.peer, "The other node: the name of a peer")->required()->type_name("NODE");
  auto* const transfers =
      command.add_option("--transfers", flags.transfers, "Send so many files, and compare their digests")
          ->type_name("N")
          ->transform(arguments::whole(1, 1'000'000'000'000));
  command
      .add_option("--packets", flags.packets,
                  "Send so many datagrams that the other node reflects, whatever has become of them")
      ->type_name("N")
      ->transform(arguments::whole(1, 1'000'000'000'000))
      ->excludes(transfers);
  command.add_option("--bytes", flags.bytes, "Of each file, such as 64M (4M)")->type_name("SIZE");
  command.add_option("--size", flags.size, "Payload of each datagram, in bytes (1400)")
      ->type_name("N")
      ->transform(arguments::whole(1, wire::kChunkBytesMax));
  command
      .add_option("--state", flags.state,
                  "Keep in this file what was found; the same command resumes (default: one for each peer in "
                  "$XDG_STATE_HOME/sluice)")
      ->type_name("FILE");
  command.add_flag("--restart", flags.restart, "Forget what an earlier run has found");
  command
      .add_option("--patience", flags.patience_s,
                  "For so many seconds try again what fails because a daemon or the peer is away (3600)")
      ->type_name("S")
      ->transform(arguments::number(0, 1e7));
  command.add_flag("-q,--quiet", flags.quiet, "No progress");
  add_option(command, flags.transfer, "rate_bps", {},
             "Limit in bit/s, such as 100M (datagrams that are reflected: 10M)");
  for (const char* const name : {"lanes", "chunk_bytes", "mode", "protection", "ipv4", "ipv6"})
    add_option(command, flags.transfer, name);
}

}  // namespace

void add_probe_command(CLI::App& app, Context& context) {
  CLI::App* const probe = app.add_subcommand("probe", "Look for faults of a path, a card or memory");
  probe->require_subcommand(1);
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* const command = probe->add_subcommand(
      "integrity", "Send to another node for as long as it takes, and see whether all arrives unchanged");
  add_integrity_flags(*command, *flags);
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return integrity(context, *flags); }; });
}

}  // namespace sluice::cli
