// SPDX-License-Identifier: Apache-2.0
#include "control/proto/names_codec.h"

#include "control/proto/name_entry.h"
#include "dataplane/base/file_time.h"

namespace sluice::peer {
namespace {

// ---- to the wire ---------------------------------------------------------------------------------

void put(const names::List& list, NamesRequest* to) {
  ListNames* one = to->mutable_list();
  one->set_path(list.path);
  one->set_itself(list.itself);
  one->set_recursive(list.recursive);
  one->set_glob(list.glob);
  one->set_unfinished(list.unfinished);
  one->set_digests(list.digests);
  one->set_digest_kind(static_cast<DigestKind>(list.digest_kind));
  one->set_pages(list.pages);
}

void put(const names::MakeDirectory& made, NamesRequest* to) {
  to->mutable_make_directory()->set_path(made.path);
  to->mutable_make_directory()->set_parents(made.parents);
}

void put(const names::Move& move, NamesRequest* to) {
  to->mutable_move()->set_from(move.from);
  to->mutable_move()->set_to(move.to);
  to->mutable_move()->set_replace(move.replace);
}

void put(const names::Remove& remove, NamesRequest* to) {
  to->mutable_remove()->set_path(remove.path);
  to->mutable_remove()->set_recursive(remove.recursive);
  to->mutable_remove()->set_empty(remove.empty);
}

void put(const names::AboutNode&, NamesRequest* to) { (void)to->mutable_about(); }

void put(const names::Request& request, PeerMessage* wire) {
  std::visit([wire](const auto& one) { put(one, wire->mutable_names_request()); }, request);
}

void put(const names::Page& page, PeerMessage* wire) {
  NamesPage* to = wire->mutable_names_page();
  for (const names::Entry& entry : page.entries) names::put_entry(entry, to->add_entries());
}

void put(const names::More& more, PeerMessage* wire) { wire->mutable_names_more()->set_pages(more.pages); }

void put(const names::NodeState& node, NodeState* to) {
  to->set_software(node.software);
  to->set_asked_unix_ns(node.asked_unix_ns);
  to->set_answered_unix_ns(node.answered_unix_ns);
  for (const names::Space& space : node.spaces) {
    ExportSpace* const one = to->add_spaces();
    one->set_name(space.name);
    one->set_size_bytes(space.size_bytes);
    one->set_free_bytes(space.free_bytes);
  }
}

void put(const names::Done& done, PeerMessage* wire) {
  NamesDone* to = wire->mutable_names_done();
  to->set_entries(done.entries);
  to->set_failed(done.failed);
  for (const names::Entry& entry : done.problems) names::put_entry(entry, to->add_problems());
  if (done.node) put(*done.node, to->mutable_node());
}

// ---- from the wire -------------------------------------------------------------------------------

names::Type type_of(NameType type) {
  const auto number = static_cast<uint32_t>(type);
  return number <= static_cast<uint32_t>(names::kTypeLast) ? static_cast<names::Type>(number)
                                                           : names::Type::kUnknown;
}

using EntryField = google::protobuf::RepeatedPtrField<NameEntry>;

std::vector<names::Entry> take(const EntryField& field) {
  std::vector<names::Entry> entries;
  entries.reserve(static_cast<size_t>(field.size()));
  for (const NameEntry& one : field) {
    entries.push_back({.path = one.path(),
                       .type = type_of(one.type()),
                       .size_bytes = one.size(),
                       .mode = one.mode(),
                       .mtime_ns = base::file_time_of(one),
                       .uid = one.uid(),
                       .gid = one.gid(),
                       .links = one.links(),
                       .allocated_bytes = one.allocated_bytes(),
                       .target = one.target(),
                       .digest = one.has_digest() ? std::optional(one.digest()) : std::nullopt,
                       .digest_kind = names::digest_kind(static_cast<uint32_t>(one.digest_kind())),
                       .error_code = one.error_code(),
                       .error = one.error()});
  }
  return entries;
}

names::NodeState take(const NodeState& node) {
  names::NodeState state{.software = node.software(),
                         .asked_unix_ns = node.asked_unix_ns(),
                         .answered_unix_ns = node.answered_unix_ns(),
                         .spaces = {}};
  for (const ExportSpace& space : node.spaces())
    state.spaces.push_back(
        {.name = space.name(), .size_bytes = space.size_bytes(), .free_bytes = space.free_bytes()});
  return state;
}

std::optional<names::Word> take(const NamesRequest& request) {
  switch (request.ask_case()) {
    case NamesRequest::kList:
      return names::Request(
          names::List{.path = request.list().path(),
                      .itself = request.list().itself(),
                      .recursive = request.list().recursive(),
                      .glob = request.list().glob(),
                      .unfinished = request.list().unfinished(),
                      .digests = request.list().digests(),
                      .digest_kind = names::digest_kind(static_cast<uint32_t>(request.list().digest_kind())),
                      .pages = request.list().pages()});
    case NamesRequest::kMakeDirectory:
      return names::Request(names::MakeDirectory{.path = request.make_directory().path(),
                                                 .parents = request.make_directory().parents()});
    case NamesRequest::kMove:
      return names::Request(names::Move{
          .from = request.move().from(), .to = request.move().to(), .replace = request.move().replace()});
    case NamesRequest::kRemove:
      return names::Request(names::Remove{.path = request.remove().path(),
                                          .recursive = request.remove().recursive(),
                                          .empty = request.remove().empty()});
    case NamesRequest::kAbout:
      return names::Request(names::AboutNode{});
    case NamesRequest::ASK_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

PeerMessage to_wire(const names::Word& word) {
  PeerMessage wire;
  std::visit([&wire](const auto& one) { put(one, &wire); }, word);
  return wire;
}

std::optional<names::Word> word_from_wire(const PeerMessage& wire) {
  switch (wire.body_case()) {
    case PeerMessage::kNamesRequest:
      return take(wire.names_request());
    case PeerMessage::kNamesPage:
      return names::Page{.entries = take(wire.names_page().entries())};
    case PeerMessage::kNamesMore:
      return names::More{.pages = wire.names_more().pages()};
    case PeerMessage::kNamesDone:
      return names::Done{.entries = wire.names_done().entries(),
                         .failed = wire.names_done().failed(),
                         .problems = take(wire.names_done().problems()),
                         .node = wire.names_done().has_node() ? std::optional(take(wire.names_done().node()))
                                                              : std::nullopt};
    default:
      return std::nullopt;
  }
}

}  // namespace sluice::peer
