// A receiving end with several sources: SeveralSources says who is asked for what and which extents count;
// here the receiver and the peers hear of it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "control/destination/destination_end.h"
#include "dataplane/base/text.h"

namespace sluice::transfer {

void DestinationEnd::join_source(const Way& way, uint64_t now_ns, Effects& out) {
  if (!way.agreement.abilities.has(Ability::kParts) || way.lanes == 0) return;
  std::ranges::move(files_.take_no_holes(), std::back_inserter(of_sources_.wrong));
  forget_wrong(out);
  if (!several_) several_.emplace(agreement_.extent_bytes, agreement_.crc_kind, way.seed);
  several_->join({.leg = way.stream.leg(),
                  .peer = way.peer_name,
                  .rtt_ns = way.rtt_ns,
                  .expected_bps = way.expected_bps,
                  .lanes = static_cast<uint32_t>(way.lanes),
                  .digests_unanswered = way.agreement.digests_unanswered},
                 now_ns);
  for (uint32_t i = 0; i < catalog().object_count(); ++i) want(ObjectId(i));
}

// Sources are asked for what workers have open. An object that is complete already lacks nothing but its
// name.
void DestinationEnd::want(ObjectId object) {
  if (receiver_->done(object) || failing_.contains(object)) return;
  const bool plain = !catalog().packed(object) && !files_.discards();
  const std::vector<recovery::Range>& holes = catalog().files_of(object).front().holes;
  if (several_->has(object)) return several_->has_holes(object, holes);
  const bool complete = receiver_->written(object).complete();
  const bool listed = plain && !catalog().files_of(object).front().digests.expected.empty();
  // Nobody knows which source had brought what is there already, so one source says the digest of the whole.
  const bool witnessed = plain && !listed;
  if (!witnessed) judge_whole(object);
  if (!files_.is_open(object) && !(witnessed && complete)) return;
  several_->add({.id = object,
                 .size_bytes = catalog().object(object).size_bytes,
                 .whole = catalog().packed(object),
                 .listed = listed,
                 .witnessed = witnessed,
                 .holes = holes,
                 .shown = catalog().shown(object)},
                receiver_->held(object));
}

Status DestinationEnd::on(const ObjectOpened& event, Effects& out) {
  const Status status = files_.on(event, out);
  if (status && several_ && running_) want(event.object);
  return status;
}

void DestinationEnd::tick_source(LegId id, uint64_t bytes, uint64_t now_ns) {
  const DestinationLeg& leg = legs_.at(id);
  several_->tick(id, {.bytes = bytes, .up = leg.up(), .heard_ns = leg.heard_ns()}, now_ns);
}

Status DestinationEnd::follow_sources(Effects& out) {
  if (!several_) return {};
  // A sync failed, or a disk gave back other bytes than were written: before anything else counts.
  if (receiver_->forgettings() != forgettings_) {
    forgettings_ = receiver_->forgettings();
    for (uint32_t i = 0; i < catalog().object_count(); ++i)
      several_->only_there(ObjectId(i), receiver_->written(ObjectId(i)));
  }
  SeveralSources::Actions actions = several_->take_actions();
  for (const board::Event& event : actions.written) receiver_->on_event(event);
  for (const ObjectId object : actions.whole) judge_whole(object);
  for (const ObjectId object : actions.unsettled)
    if (Status status = unsettled(object, out); !status) return status;
  of_sources_.wrong.insert(of_sources_.wrong.end(), actions.forgotten.begin(), actions.forgotten.end());
  forget_wrong(out);
  for (SeveralSources::Word& word : actions.words) say_on(word.leg, std::move(word.message), out);
  return actions.error ? Status(*actions.error) : Status();
}

// The list wants other bytes than are there. True: another source may have them.
bool DestinationEnd::settle_sources(ObjectId object, Effects& out) {
  if (!several_ || files_.halted() || !several_->settle(object)) return false;
  receiver_->finish_later(object);
  out.log(LogLevel::kWarn,
          unlike_list(object, "comparing what each source has, and fetching again what differs").message);
  return true;
}

Status DestinationEnd::unsettled(ObjectId object, Effects& out) {
  if (receiver_->done(object) || failing_.contains(object) || !commits_[object].idle()) return {};
  return fail(object, unlike_list(object, "no source has what it wants; nothing of it was stored"), out,
              catalog::Failure::kNotAsListed);
}

void DestinationEnd::leave_out_differing(ObjectId object) {
  if (!several_) return;
  for (const LegId leg : several_->differing(object)) {
    of_sources_.left_out.push_back(
        {.leg = leg,
         .error = {ErrorCode::kIntegrity,
                   fmt::format("its {} differs from the list, and another source's does not: compare it",
                               base::printable(catalog().files_of(object).front().name))}});
  }
}

// A pack is of one source alone, which has looked at it again before it gets its names.
bool DestinationEnd::lists_judge() const {
  if (catalog().growing()) return false;
  for (ObjectId object; catalog().contains(object); ++object) {
    const auto is_unlisted = [](const catalog::File& file) {
      return !file.packed() && file.size_bytes != 0 && file.digests.expected.empty();
    };
    if (std::ranges::any_of(catalog().files_of(object), is_unlisted)) return false;
  }
  return true;
}

void DestinationEnd::forget_wrong(Effects& out) {
  std::erase_if(of_sources_.wrong, [&](const parts::ObjectRange& run) {
    const recovery::ExtentMap& durable = receiver_->ledger(run.object).map();
    const uint64_t before = durable.set_extents();
    if (!receiver_->forget(run.object, durable.whole_in(run.range))) return false;
    if (durable.set_extents() != before) journal_suspect(run.object, Entry::kNoted, out);
    return true;
  });
}

// The source of each extent has said its digest. If there were several, one says that of the whole as well.
void DestinationEnd::judge_whole(ObjectId object) {
  if (receiver_->done(object) || !receiver_->written(object).complete()) return;
  const auto is_its_own = [object](const parts::ObjectRange& run) { return run.object == object; };
  if (std::ranges::any_of(of_sources_.wrong, is_its_own)) return;  // it is forgotten first
  const std::optional<uint64_t> witnessed = several_ ? several_->witnessed(object) : std::nullopt;
  (void)receiver_->file_digest(object, {.size_bytes = catalog().object(object).size_bytes,
                                        .digest = witnessed.value_or(receiver_->digest(object))});
}

}  // namespace sluice::transfer
