// SPDX-License-Identifier: Apache-2.0
#include "tools/gfal2/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "control/client/requests.h"
#include "control/client/watch.h"
#include "control/proto/session_state.h"
#include "dataplane/base/text.h"
#include "tools/gfal2/node.h"
#include "tools/gfal2/places/place.h"

namespace sluice::gfal {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds kBetweenMarkers{1};
constexpr seconds kNodeAway{60};   // so long the node may be away, as for a restart, before the copy gives up
constexpr seconds kCancelled{60};  // so long a session may take to end once it was cancelled
constexpr size_t kTextBytes = 256;

// What gfal2's user wants.
struct Wanted {
  explicit Wanted(gfalt_params_t params) {
    char type[kTextBytes] = "";
    char value[kTextBytes] = "";
    mode = ::gfalt_get_checksum(params, type, sizeof type, value, sizeof value, nullptr);
    checksum_type = type;
    checksum = value;
    timeout_s = ::gfalt_get_timeout(params, nullptr);
    overwrite = ::gfalt_get_replace_existing_file(params, nullptr) != 0;
    parents = ::gfalt_get_create_parent_dir(params, nullptr) != 0;
    strict = ::gfalt_get_strict_copy_mode(params, nullptr) != 0;
    for (const char* token :
         {::gfalt_get_src_spacetoken(params, nullptr), ::gfalt_get_dst_spacetoken(params, nullptr)})
      space_token = space_token || (token != nullptr && *token != '\0');
    if (!strict) return;
    mode = GFALT_CHECKSUM_NONE;
    overwrite = parents = false;
  }

  std::string checksum_type;
  std::string checksum;
  gfalt_checksum_mode_t mode;
  uint64_t timeout_s = 0;
  bool overwrite = false;
  bool parents = false;
  bool strict =
      false;  // nothing but the copy: no look at the destination, no checksums, nothing replaced or made
  bool space_token = false;
};

class Copy {
 public:
  Copy(gfal2_context_t context, gfalt_params_t params, const char* source, const char* destination)
      : context_(context),
        params_(params),
        wanted_(params),
        source_url_(source),
        destination_url_(destination) {}

  void run();

 private:
  template <typename Step>
  auto at(const char* side, const char* note, const Step& step);
  template <typename... Values>
  void event(gfal_event_side_t side, GQuark stage, fmt::format_string<Values...> text, Values&&... values) {
    ::plugin_trigger_event(params_, quark(), side, stage, "%s",
                           fmt::format(text, std::forward<Values>(values)...).c_str());
  }

  void prepare(Node& node);
  void check_places() const;
  void look_at_source(Node& node);
  void look_at_destination(Node& node);
  std::string checksum(Node& node, const Place& place, gfal_event_side_t side);
  void compare(const std::string& found, const std::string& expected, const char* side) const;
  api::TransferOptions options() const;
  void begin(Node& node);
  void follow();
  bool heard(const api::Session& session, Node& node);
  void marker(const api::Session& session, bool last);
  void phase(const api::Session& session);
  void end_session(int reason, const std::string& why);
  void check_end(const api::Session& session) const;

  gfal2_context_t context_;
  gfalt_params_t params_;
  Wanted wanted_;
  const char* source_url_;
  const char* destination_url_;
  Place source_;
  Place destination_;
  std::string source_peer_;  // empty: this node
  std::string destination_peer_;
  std::string source_sum_;
  std::string session_;
  Clock::time_point began_ = Clock::now();
  std::optional<Clock::time_point> last_marker_;
  bool moving_ = false;   // between TRANSFER_ENTER and TRANSFER_EXIT
  bool closing_ = false;  // between CLOSE_ENTER and CLOSE_EXIT
};

// A Problem of a step is said to be one of that step.
template <typename Step>
auto Copy::at(const char* side, const char* note, const Step& step) {
  try {
    return step();
  } catch (const CopyProblem&) {
    throw;
  } catch (const Problem& problem) {
    throw CopyProblem(problem, side, note);
  }
}

// ---- before ------------------------------------------------------------------------------------

void Copy::check_places() const {
  const auto refuse = [](int reason, const std::string& text) { throw Problem(reason, text); };
  for (const Place* place : {&source_, &destination_}) {
    const bool memory = !place->node.empty() && api::is_memory_source(place->path);
    if (!base::is_utf8(place->path) || memory)
      refuse(EINVAL, place->shown() + ": files with such names are not copied; rename it");
    if (!place->node.empty() && parent_part(place->path).empty())
      refuse(EINVAL, place->shown() + ": names no file; write sluice://NODE/EXPORT/PATH");
  }
  if (source_peer_ == destination_peer_)
    refuse(EOPNOTSUPP, source_.shown() + " and " + destination_.shown() +
                           " are of the same node; Sluice copies between two nodes");
}

void Copy::look_at_source(Node& node) {
  const api::NameEntry entry = at(GFALT_ERROR_SOURCE, "", [&] { return node.entry_of(source_); });
  if (entry.type() == api::NameEntry::FILE) return;
  const bool directory = entry.type() == api::NameEntry::DIRECTORY;
  throw CopyProblem(
      Problem(directory ? EISDIR : EINVAL,
              source_.shown() + (directory ? ": is a directory; copy its files" : ": is no regular file")),
      GFALT_ERROR_SOURCE, "");
}

// What stands there, if this node may know.
void Copy::look_at_destination(Node& node) {
  std::optional<api::NameEntry> there;
  try {
    there = node.entry_of(destination_);
  } catch (const Problem& problem) {
    if (problem.reason() == ECANCELED) throw;
    // A place that may be written need not be one that may be looked at: the session finds out.
  }
  if (!there) return;
  if (there->type() == api::NameEntry::DIRECTORY)
    throw CopyProblem(Problem(EISDIR, destination_.shown() + ": is a directory; name the file in it"),
                      GFALT_ERROR_DESTINATION, GFALT_ERROR_EXISTS);
  if (!wanted_.overwrite)
    throw CopyProblem(Problem(EEXIST, destination_.shown() + ": exists, and is not to be replaced"),
                      GFALT_ERROR_DESTINATION, GFALT_ERROR_EXISTS);
  event(GFAL_EVENT_DESTINATION, ::GFAL_EVENT_OVERWRITE_DESTINATION, "{}: is replaced once all has arrived",
        destination_.shown());
}

std::string Copy::checksum(Node& node, const Place& place, gfal_event_side_t side) {
  event(side, ::GFAL_EVENT_CHECKSUM_ENTER, "{}", wanted_.checksum_type);
  std::string found = node.checksum_of(place, wanted_.checksum_type);
  event(side, ::GFAL_EVENT_CHECKSUM_EXIT, "{}:{}", wanted_.checksum_type, found);
  return found;
}

// Leading zeros and the case of letters say nothing.
void Copy::compare(const std::string& found, const std::string& expected, const char* side) const {
  const auto plain = [](std::string text) {
    text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
  };
  if (plain(found) == plain(expected)) return;
  const bool arrived = side == std::string_view(GFALT_ERROR_DESTINATION);
  throw CopyProblem(
      Problem(EIO, fmt::format("{} of {} is {}, and not {}{}", wanted_.checksum_type,
                               arrived ? destination_.shown() : source_.shown(), found,
                               base::printable(expected, 100), arrived ? "; it stays there" : "")),
      side, GFALT_ERROR_CHECKSUM_MISMATCH);
}

void Copy::prepare(Node& node) {
  event(GFAL_EVENT_NONE, ::GFAL_EVENT_PREPARE_ENTER, "{} => {}", source_url_, destination_url_);
  source_ = at(GFALT_ERROR_SOURCE, "", [this] { return place_of(source_url_); });
  destination_ = at(GFALT_ERROR_DESTINATION, "", [this] { return place_of(destination_url_); });
  source_peer_ = at(GFALT_ERROR_SOURCE, "", [&] { return node.peer_of(source_); });
  destination_peer_ = at(GFALT_ERROR_DESTINATION, "", [&] { return node.peer_of(destination_); });
  at(GFALT_ERROR_TRANSFER, "", [this] { check_places(); });
  if (wanted_.space_token)
    ::gfal2_log(G_LOG_LEVEL_WARNING, "Sluice has no space tokens: the one given is ignored");
  look_at_source(node);
  if (!wanted_.strict) look_at_destination(node);
  const bool own = (wanted_.mode & GFALT_CHECKSUM_SOURCE) != 0;
  if (own) {
    source_sum_ = at(GFALT_ERROR_SOURCE, GFALT_ERROR_CHECKSUM,
                     [&] { return checksum(node, source_, GFAL_EVENT_SOURCE); });
    if (!wanted_.checksum.empty()) compare(source_sum_, wanted_.checksum, GFALT_ERROR_SOURCE);
  }
  event(GFAL_EVENT_NONE, ::GFAL_EVENT_PREPARE_EXIT, "{} => {}", source_url_, destination_url_);
}

// ---- the session -------------------------------------------------------------------------------

api::TransferOptions Copy::options() const {
  api::TransferOptions options;
  options.set_overwrite(wanted_.overwrite);
  options.set_mkdir(wanted_.parents);
  options.set_on_error("fail");  // whoever waits here is no operator who would mend it
  return options;
}

void Copy::begin(Node& node) {
  if (destination_peer_.empty()) {
    api::GetRequest get;
    get.set_peer(source_peer_);
    get.add_sources(source_.path);
    get.set_destination(destination_.path);
    *get.mutable_options() = options();
    session_ = node.begin(get);
    return;
  }
  api::SendRequest send;
  send.set_from(source_peer_);
  send.add_sources(source_.path);
  send.set_peer(destination_peer_);
  send.set_destination(destination_.path);
  *send.mutable_options() = options();
  session_ = node.begin(send);
}

void Copy::marker(const api::Session& session, bool last) {
  const Clock::time_point now = Clock::now();
  if (!last && last_marker_ && now - *last_marker_ < kBetweenMarkers) return;
  last_marker_ = now;
  constexpr double kBitsPerByte = 8;
  _gfalt_transfer_status status{};
  status.bytes_transfered = session.bytes_done();
  status.average_baudrate = static_cast<size_t>(session.goodput_bps() / kBitsPerByte);
  status.instant_baudrate = static_cast<size_t>(session.rate_bps() / kBitsPerByte);
  status.transfer_time = std::chrono::duration_cast<seconds>(now - began_).count();
  ::plugin_trigger_monitor(params_, &status, source_url_, destination_url_);
}

// Once all bytes are there, the destination syncs the file and gives it its name.
void Copy::phase(const api::Session& session) {
  const bool closes =
      session.state() == api::Session::FINISHING || session.state() == api::Session::SUCCEEDED;
  if (moving_ && (closes || api::stands_still(session))) {
    moving_ = false;
    event(GFAL_EVENT_NONE, ::GFAL_EVENT_TRANSFER_EXIT, "{} => {}", source_url_, destination_url_);
  }
  if (closes && !closing_) {
    closing_ = true;
    event(GFAL_EVENT_DESTINATION, ::GFAL_EVENT_CLOSE_ENTER, "{}", destination_url_);
  }
  if (closing_ && api::stands_still(session))
    event(GFAL_EVENT_DESTINATION, ::GFAL_EVENT_CLOSE_EXIT, "{}", destination_url_);
}

// Does the session go on, and this copy with it?
bool Copy::heard(const api::Session& session, Node& node) {
  marker(session, api::stands_still(session));
  phase(session);
  if (api::stands_still(session)) return true;
  if (node.cancellation().cancelled() || ::gfal2_is_canceled(context_) != 0) return false;
  return wanted_.timeout_s == 0 || Clock::now() - began_ < seconds(wanted_.timeout_s);
}

void Copy::end_session(int reason, const std::string& why) {
  event(GFAL_EVENT_NONE, ::GFAL_EVENT_CANCEL_ENTER, "{}", why);
  std::string rest;
  try {
    Node node(context_);
    node.cancel_session(session_);
    const auto limit_s = static_cast<double>(kCancelled.count());
    const api::Watched end =
        api::watch_session(node.control(), session_, limit_s, [this](const api::Session& now) {
          phase(now);
          return true;
        });
    if (end.end != api::Watched::End::kStandsStill) rest = "; session " + session_ + " has not ended yet";
  } catch (const Problem& problem) {
    rest = "; session " + session_ + " could not be cancelled: " + problem.what();
  }
  event(GFAL_EVENT_NONE, ::GFAL_EVENT_CANCEL_EXIT, "{}", why);
  throw CopyProblem(Problem(reason, why + rest), GFALT_ERROR_TRANSFER, "");
}

void Copy::check_end(const api::Session& session) const {
  if (session.error_code() == 0 && session.state() == api::Session::SUCCEEDED) return;
  const std::string& error = session.error();
  if (session.error_code() == 0)
    throw CopyProblem(Problem(ECANCELED, "session " + session_ + " was cancelled at a node"),
                      GFALT_ERROR_TRANSFER, "");
  int reason = errno_of(static_cast<int>(session.error_code()), error);
  // gfal-copy --force removes what stands in its way, as it takes this for: so it may hear of nothing else by
  // that number.
  if (reason == EEXIST && wanted_.overwrite) reason = EBUSY;
  const auto code = static_cast<ErrorCode>(session.error_code());
  const bool of_source = code == ErrorCode::kSourceUnreadable;
  const bool of_destination = code == ErrorCode::kDestinationExists || code == ErrorCode::kNoSpace ||
                              code == ErrorCode::kQuota || code == ErrorCode::kStorage;
  const char* const side = of_source        ? GFALT_ERROR_SOURCE
                           : of_destination ? GFALT_ERROR_DESTINATION
                                            : GFALT_ERROR_TRANSFER;
  throw CopyProblem(Problem(reason, error), side, reason == EEXIST ? GFALT_ERROR_EXISTS : "");
}

// The session goes on while the node is away; it is found again once it is back.
void Copy::follow() {
  std::optional<Clock::time_point> away_since;
  for (;;) {
    api::Watched watched;
    bool cancelled = false;
    std::string problem;
    try {
      Node node(context_);
      watched = api::watch_session(node.control(), session_, std::nullopt, [&](const api::Session& session) {
        away_since.reset();
        return heard(session, node);
      });
      cancelled = node.cancellation().cancelled();
    } catch (const Problem& of_node) {
      problem = of_node.what();
    }
    if (watched.end == api::Watched::End::kStandsStill) return check_end(watched.last);
    if (cancelled || ::gfal2_is_canceled(context_) != 0) end_session(ECANCELED, "the copy was cancelled");
    if (wanted_.timeout_s != 0 && Clock::now() - began_ >= seconds(wanted_.timeout_s))
      end_session(ETIMEDOUT, fmt::format("the copy took longer than {} s", wanted_.timeout_s));
    if (!away_since) away_since = Clock::now();
    if (watched.failure && watched.failure->kind == api::Failure::Kind::kRefused) refuse(*watched.failure);
    if (Clock::now() - *away_since > kNodeAway) {
      if (problem.empty() && watched.failure) problem = api::error_of(*watched.failure).message;
      throw Problem(ECONNREFUSED, problem + "; session " + session_ + " goes on once its node is back");
    }
    std::this_thread::sleep_for(seconds(1));
  }
}

void Copy::run() {
  {
    Node node(context_);
    prepare(node);
    event(GFAL_EVENT_NONE, ::GFAL_EVENT_TRANSFER_ENTER, "{} => {}", source_url_, destination_url_);
    moving_ = true;
    const bool third = !source_peer_.empty() && !destination_peer_.empty();
    event(GFAL_EVENT_NONE, ::GFAL_EVENT_TRANSFER_TYPE, "{}",
          third ? GFAL_TRANSFER_TYPE_PUSH : GFAL_TRANSFER_TYPE_STREAMED);
    at(GFALT_ERROR_TRANSFER, "", [&] { begin(node); });
  }
  at(GFALT_ERROR_TRANSFER, "", [this] { follow(); });
  if ((wanted_.mode & GFALT_CHECKSUM_TARGET) == 0) return;
  at(GFALT_ERROR_DESTINATION, GFALT_ERROR_CHECKSUM, [this] {
    Node node(context_);
    const std::string found = checksum(node, destination_, GFAL_EVENT_DESTINATION);
    const std::string& expected = wanted_.checksum.empty() ? source_sum_ : wanted_.checksum;
    if (!expected.empty()) compare(found, expected, GFALT_ERROR_DESTINATION);
  });
}

}  // namespace

GQuark quark() { return ::g_quark_from_string("GFAL2::PLUGIN::SLUICE"); }

void copy_file(gfal2_context_t context, gfalt_params_t params, const char* source, const char* destination) {
  try {
    Copy(context, params, source, destination).run();
  } catch (const CopyProblem&) {
    throw;
  } catch (const Problem& problem) {
    throw CopyProblem(problem, GFALT_ERROR_TRANSFER, "");
  }
}

}  // namespace sluice::gfal
