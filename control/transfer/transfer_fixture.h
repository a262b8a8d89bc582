// A whole transfer in a test: its effects are performed in memory, with success unless the test says
// otherwise, and its peer is an honest one. For tests.
//
// Time stands still until pass(). Whatever the transfer asks for is answered before post() returns, but for
// what the test holds back. After every step the transfer is looked at (view()), since an operator may do
// that at any time, and a transfer that would have its caller call it again and again at one time fails the
// test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/transfer/peer_fixture.h"
#include "control/transfer/transfer.h"

namespace sluice::transfer::test {

constexpr LegId kLeg(0);
// In which all that a test has begun comes to its end.
constexpr uint64_t kLongNs = 60 * kSecondNs;

struct Scene {
  Role role = Role::kSource;
  bool initiator = true;
  // The first is synced before it is complete, the second is small, the third empty.
  std::vector<uint64_t> sizes = {5U << 20, kExtent + 100, 0};
  uint32_t lanes = 1;
  uint32_t legs = 1;  // to one peer
  bool discard = false;
  bool verify = false;
  Options options{.rate_bps = 1'000'000'000};  // that the others here do not say
  int32_t priority = 0;
  double deadline_s = 0;  // from its start; 0: none
  deadline::Policy deadline_policy = deadline::Policy::kRefuse;
  bool opened = false;   // the caller has opened the sources already
  bool suspect = false;  // somebody has them open for writing
  bool packs = false;    // a tree: the first is a pack, the last the last pack
  // The list grows while data moves: so many files at first, then one at a time. 0: it is whole.
  size_t grows = 0;
  bool bare_end = false;  // that it has ended is found without another file
  ThisNode settings = {{.node_name = "here"}};
};

std::string name_of(const Scene& scene);
// Source and destination, each as the one who calls and the one who is called.
std::vector<Scene> every_scene();

template <typename T, typename Variant>
struct IndexOf;
template <typename T, typename... Ts>
struct IndexOf<T, std::variant<Ts...>> {
  static constexpr size_t value = [] {
    size_t at = 0;
    (void)((std::is_same_v<T, Ts> || (++at, false)) || ...);
    return at;
  }();
};
template <typename E>
inline constexpr size_t kEffect = IndexOf<E, Effect>::value;

class World {
 public:
  explicit World(Scene scene = {});
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // ---- what happens ----
  World& start();  // Begin, a dataplane, and the peer's call if it is the one who calls
  void post(const Event& event);
  void hear(const Message& message) { post(Received{.message = message}); }
  void attach() { post(BoardAttached{dataplane_at(1, generation)}); }
  void lose_board();
  void lose_stream(LegId leg = kLeg);
  void peer_calls(bool renew = false, LegId leg = kLeg);
  void peer_calls_with(const Hello& hello);
  void peer_calls_again();                                                  // on each leg that has no stream
  bool take_back_call() { return std::exchange(line(kLeg).calls, false); }  // false: nobody waits
  void close_flows(LegId leg);  // by their workers, though nobody asked
  void pass(uint64_t ns);  // with a Tick each so often while there are flows, and TimerDue when it is due
  void tick();
  // The control dies and its successor reads the journal. `adopt`: the flows are still there.
  void restart(bool adopt, Recovered found = Recovered::kHeld);

  // ---- what goes wrong ----
  // The next answer to such an effect (after `skip` of them) is this error, or is held back until release().
  template <typename E>
  void fail(ErrorCode code, size_t skip = 0) {
    plans_.push_back({.effect = kEffect<E>, .skip = skip, .error = Error{code, "as the test wants it"}});
  }
  void fail(Entry entry, ErrorCode code, size_t skip = 0);
  template <typename E>
  void hold(size_t skip = 0) {
    plans_.push_back({.effect = kEffect<E>, .skip = skip});
  }
  void hold(Entry entry, size_t skip = 0);
  // The n-th answer of all.
  void hold_answer(size_t n) { held_answer_ = n; }
  void hold_from(size_t n) { held_from_ = n; }
  void fail_answer(size_t n) { failed_answer_ = n; }
  void release(bool reversed = false);  // all, and holds nothing more
  void release_one_after_the_other();   // as they were asked for; what is planned stays so
  size_t held() const { return held_.size(); }

  // ---- what has come of it ----
  Transfer& transfer() { return *transfer_; }
  TransferPhase phase() const { return transfer_->phase(); }
  LegPhase leg_phase() const { return transfer_->leg(LegId(0)).phase(); }
  HandshakePhase handshake_phase() const { return transfer_->leg(LegId(0)).handshake_phase(); }
  const Leg& leg() const { return transfer_->leg(LegId(0)); }
  ViewState state() const { return transfer_->view(now_ns).state; }
  std::optional<ErrorCode> error() const;
  template <typename E>
  size_t count() const {
    return counts_[kEffect<E>];
  }
  size_t count(Entry entry) const { return entry_counts_[static_cast<size_t>(entry)]; }
  template <typename M>
  std::vector<M> said() const {  // what the transfer sent, of one kind
    std::vector<M> words;
    for (const Message& message : said_) {
      if (const M* word = std::get_if<M>(&message)) words.push_back(*word);
    }
    return words;
  }
  bool logged(std::string_view words) const;
  bool stream_open(LegId leg = kLeg) const { return lines_[leg.value()].stream; }
  bool flows_open(LegId leg = kLeg) const { return !lines_[leg.value()].slots.empty(); }
  board::FlowSlot& flow() { return *line(kLeg).slots.front(); }

  // ---- public for tests to set, and to look at ----
  Scene scene;
  HonestPeer peer;
  Content content;
  uint64_t now_ns = 1'000 * kSecondNs;
  uint64_t generation = 1;
  Saved journal;
  bool journal_empty = true;
  bool over = false;
  uint32_t place = 0;                                      // in the queue of this node; 0: there is room
  uint32_t ticket = 0;                                     // of the last wish for one
  int32_t priority_asked = 0;                              // with it
  bool reachable = true;                                   // calls are taken
  bool data = true;                                        // bytes move
  bool looks = true;                                       // at the transfer after every step
  bool workers_answer = true;                              // questions to workers
  bool reopened_found = true;                              // the unfinished files are still there
  catalog::Failure why = catalog::Failure::kNone;          // of a name that is refused
  std::optional<catalog::FileIdentity> stands_there = {};  // with the same bytes
  bool fetched_found = true;                               // the dataplane has the objects open
  Recovered recovered = Recovered::kHeld;
  sums::Mask dataplane_sums = board::kSumsKnown;    // of extents, that it has
  std::map<LaneId, uint64_t> rates;                 // of its lanes, as they were set
  uint32_t files_stay = 0;                          // of those that are to be removed
  bool unfinished_away = false;                     // a file that cannot be named was removed
  bool names_gone = false;                          // files that were done are not found any more
  std::set<std::pair<ObjectId, ExtentId>> damaged;  // what the disk gives back of these is wrong
  int64_t files_ctime_ns = 1;                       // of sources, when they were opened
  int64_t source_ctime_ns = 1;                      // and when they are looked at again
  uint64_t source_change = 0;                       // what is read again differs from what was sent by this
  std::vector<catalog::FailedName> changed_names;   // of a pack that is not what it was
  std::set<std::string> mute;                       // messages of the peer that do not come
  std::function<void(Message&)> twist = [](Message&) {};  // changes what the peer says
  std::function<void(const Effect&)> on_effect = [](const Effect&) {};
  std::vector<Message> refused;  // words to calls
  std::vector<Effect> effects;   // all, in order; without what only speaks to workers
  std::vector<std::string> logs;
  size_t answers = 0;  // so many were due
  std::set<TransferPhase> phases;
  std::set<LegPhase> leg_phases;
  std::set<HandshakePhase> handshake_phases;

 private:
  struct Line {  // what a leg has
    bool stream = false;
    bool calls = false;               // the peer's call waits
    std::vector<Message> words = {};  // that this node's call carries
    std::optional<ClaimFlows> claim;
    std::vector<std::unique_ptr<board::FlowSlot>> slots;
  };
  Line& line(LegId leg) { return lines_[leg.value()]; }
  struct Plan {
    size_t effect = 0;
    std::optional<Entry> entry;
    size_t skip = 0;
    std::optional<Error> error;  // none: held back
  };

  void run();
  void step(Event event);
  void perform(const Effect& effect);
  std::optional<Plan> plan_of(const Effect& effect);
  std::optional<Event> answer(const Effect& effect, const std::optional<Error>& error);
  std::optional<Event> answer_of_board(const Effect& effect, const Status& status);
  std::optional<Event> answer_of_files(const Effect& effect, const Status& status);
  void say(std::vector<Message> words, LegId leg);
  void send(const Message& message, LegId leg);
  void hang_up();
  uint64_t read_back(ObjectId object, recovery::Range range) const;
  void work(const recovery::LaneCommand& command);
  void arrive();
  void write(const Batch& batch);
  void forget_what_was_heard(LegId leg);
  static FlowEvent flow_event(board::EventKind kind, FlowRef flow, const board::Event& about = {});
  std::vector<catalog::File> source_files() const;
  std::vector<catalog::File> first_files();
  ListRead read_list(const ReadList& effect);
  bool is_pack(ObjectId object) const {
    return transfer_->job().catalog()->files_of(object).front().packed();
  }
  bool adopts_ = false;
  bool attached_ = false;
  bool spins_ = false;            // that was said once
  std::set<ObjectId> in_memory_;  // packs of a destination
  std::map<ObjectId, sums::Mask> summed_;
  std::optional<size_t> listed_;  // files of a list that is read
  std::vector<Line> lines_;
  bool stepping_ = false;
  std::unique_ptr<Transfer> transfer_;
  std::deque<Event> events_;
  std::vector<Event> held_;
  std::vector<Plan> plans_;
  std::optional<size_t> held_answer_;
  std::optional<size_t> held_from_;
  std::optional<size_t> failed_answer_;
  std::vector<Message> said_;
  std::vector<size_t> counts_ = std::vector<size_t>(std::variant_size_v<Effect>);
  std::vector<size_t> entry_counts_ = std::vector<size_t>(static_cast<size_t>(Entry::kAware) + 1);
};

}  // namespace sluice::transfer::test
