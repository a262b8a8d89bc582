// Any bytes as a message of a peer: refused, or taken for a message that says the same again when it is sent
// on. A refused one has no body that this version knows, or a word about names, of which the same holds.
// SPDX-License-Identifier: Apache-2.0
#include "control/names/list_check.h"
#include "control/peer/codec.h"
#include "control/peer/messages_for_test.h"
#include "control/proto/names_codec.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

// What is let in has names that are names, and is in bounds; a list is one, or is cut off.
void check_admitted(names::Word word) {
  if (!names::admit(&word)) return;
  const auto* page = std::get_if<names::Page>(&word);
  if (page == nullptr) return;
  fuzz::require(!page->entries.empty() && page->entries.size() <= names::kEntriesPerPage, "a page in bounds");
  for (const names::Entry& entry : page->entries) {
    const std::string around = "/" + entry.path + "/";
    fuzz::require(entry.path.empty() || around.find("//") == std::string::npos, "no empty name");
    fuzz::require(around.find("/../") == std::string::npos && around.find("/./") == std::string::npos,
                  "no name that leads elsewhere");
    fuzz::require(around.find('\0') == std::string::npos && around.size() <= names::kPathBytesMax + 2,
                  "no name that no file can have");
  }
  for (const bool recursive : {false, true}) {
    names::ListCheck list({.path = "data/[a-m]*", .recursive = recursive, .glob = true, .pages = 1});
    if (!list.take(*page)) continue;
    for (size_t i = 1; i < page->entries.size(); ++i)
      fuzz::require(names::compare_paths(page->entries[i - 1].path, page->entries[i].path) < 0, "in order");
    fuzz::require(!list.take(*page), "no more pages than were let come");
  }
}

void check(const names::Word& word) {
  peer::PeerMessage again;
  fuzz::require(again.ParseFromString(peer::to_wire(word).SerializeAsString()), "it can be sent on");
  const auto back = peer::word_from_wire(again);
  fuzz::require(back && peer::to_wire(*back).SerializeAsString() == again.SerializeAsString(),
                "and says the same again");
  check_admitted(word);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  peer::PeerMessage wire;
  if (!wire.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto message = peer::from_wire(wire);
  if (const auto word = peer::word_from_wire(wire)) {
    fuzz::require(!message, "a word about names is none of a session");
    check(*word);
    return 0;
  }
  if (wire.has_names_request()) return 0;  // one that asks nothing
  fuzz::require(message.has_value() == (wire.body_case() != peer::PeerMessage::BODY_NOT_SET),
                "whatever has a body is a message");
  if (!message) return 0;
  peer::PeerMessage again;
  fuzz::require(again.ParseFromString(peer::to_wire(*message).SerializeAsString()), "it can be sent on");
  const auto back = peer::from_wire(again);
  fuzz::require(back && transfer::equal_messages(*back, *message), "and says the same again");
  return 0;
}
