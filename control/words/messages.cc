// SPDX-License-Identifier: Apache-2.0
#include "control/words/messages.h"

#include <fmt/format.h>

#include <array>

#include "control/board/flow_table.h"
#include "control/catalog/catalog.h"
#include "control/selection/choice.h"
#include "dataplane/base/text.h"

namespace sluice::transfer {
namespace {

constexpr size_t kNodeTextBytesMax = 100;  // of a node's name, or its software's

// Names what is too long by its beginning.
Status check_text(std::string_view what, const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return {};
  return incompatible(fmt::format("the peer sent a {} of {} bytes (\"{}\"): at most {} are allowed", what,
                                  text.size(), base::printable(text, kNodeTextBytesMax), bytes_max));
}

Status check_count(std::string_view what, size_t count, size_t count_max) {
  if (count <= count_max) return {};
  return incompatible(
      fmt::format("the peer sent {} {} in one message: at most {} are allowed", count, what, count_max));
}

Status check_range(const recovery::Range& range) {
  if (range.length <= UINT64_MAX - range.offset) return {};
  return incompatible(
      fmt::format("the peer sent a range of {} bytes at {}, which no file has", range.length, range.offset));
}

Status check_ranges(const std::vector<recovery::Range>& ranges) {
  Status status = check_count("ranges", ranges.size(), kRangesPerMessage);
  for (size_t i = 0; status && i < ranges.size(); ++i) status = check_range(ranges[i]);
  return status;
}

// ---- what each kind of message may hold ----------------------------------------------------------

Status check_grant(const SignedGrant& grant) {
  if (grant.bytes() <= kGrantBytesMax) return {};
  return incompatible(fmt::format("the peer sent a grant of {} bytes: at most {} are allowed", grant.bytes(),
                                  kGrantBytesMax));
}

Status admit_one(Hello& m) {
  m.software = base::printable(m.software, kNodeTextBytesMax);
  if (!m.user.empty() && !good_user_name(m.user))
    return incompatible(
        fmt::format("the peer names a user that cannot be (\"{}\"): at most {} bytes, without control "
                    "characters, are allowed",
                    base::printable(m.user, kNodeTextBytesMax), kUserBytesMax));
  if (m.grant) {
    if (Status status = check_grant(*m.grant); !status) return status;
  }
  if (m.lease) {
    if (const Status status = check_lease(*m.lease); !status)
      return incompatible("the peer names a lease that cannot be: " + status.error().message);
  }
  if (m.move && m.move->bytes() > kMoveBytesMax)
    return incompatible(fmt::format("the peer shows a move of {} bytes: at most {} are allowed",
                                    m.move->bytes(), kMoveBytesMax));
  return check_count("flow ids", m.flow_ids.size(), board::kLanesMax);
}

// Of a TransferRequest, or an Order.
template <typename M>
Status check_sources(const M& m) {
  Status status = check_count("paths", m.source_paths.size(), catalog::kFilesMax);
  for (size_t i = 0; status && i < m.source_paths.size(); ++i) {
    status = check_text("path", m.source_paths[i], kPathBytesMax);
  }
  if (!status) return status;
  if (Status selected = selection::check_selection(m.selection, m.source_paths.size()); !selected)
    return incompatible("the peer asks for a selection that cannot be: " + selected.error().message);
  return {};
}

Status admit_one(TransferRequest& m) { return check_sources(m); }

Status admit_one(TransferOffer& m) {
  Status status = check_count("files", m.files.size(), catalog::kFilesMax);
  if (status) status = check_text("destination", m.destination, kPathBytesMax);
  for (size_t i = 0; status && i < m.files.size(); ++i) {
    status = check_text("name", m.files[i].name, kPathBytesMax);
    const catalog::Attributes& kept = m.files[i].attributes;
    if (status) status = check_text("name of an owner", kept.user, catalog::kAccountBytesMax);
    if (status) status = check_text("name of a group", kept.group, catalog::kAccountBytesMax);
    if (status && kept.kept_bytes() > catalog::kKeptBytesMax)
      status = incompatible(fmt::format(
          "the peer sent {} bytes of extended attributes and ACLs of {}: at most {}", kept.kept_bytes(),
          base::printable(m.files[i].name, kNodeTextBytesMax), catalog::kKeptBytesMax));
  }
  size_t holes = 0;
  for (const OfferedFile& file : m.files) {
    holes += file.holes.size();
    if (status) status = check_count("digests of a file", file.expected.size(), digests::kKinds.size());
  }
  if (status) status = check_count("holes", holes, catalog::kHolesMax);
  return status;
}

Status admit_one(TransferReady& m) {
  for (std::string& path : m.final_paths) path = base::printable(path, kPathBytesMax);
  return check_count("final paths", m.final_paths.size(), catalog::kFilesMax);
}

Status check_names(const std::vector<catalog::FailedName>& names) {
  Status status = check_count("failures", names.size(), catalog::kFailuresKept);
  for (size_t i = 0; status && i < names.size(); ++i)
    status = check_text("name", names[i].path, kPathBytesMax);
  return status;
}

Status admit_one(Order& m) {
  Status status = check_grant(m.grant);
  if (status) status = check_text("destination", m.destination, kGrantPathBytesMax);
  return status ? check_sources(m) : status;
}

Status admit_one(OrderWish& m) { return check_grant(m.grant); }

Status admit_one(OrderState& m) {
  Status status = check_names(m.names.failures);
  if (status) status = check_count("files", m.files.size(), kOrderedFilesTold);
  for (std::string* const text : {&m.waiting_for, &m.error, &m.crc, &m.protection})
    *text = base::printable(*text, kTextBytesMax);
  m.verdict.evidence.resize(std::min(m.verdict.evidence.size(), verdict::kEvidenceMax));
  for (std::string& line : m.verdict.evidence) line = base::printable(line, kTextBytesMax);
  for (OrderedFile& file : m.files) {
    for (std::string* const text : {&file.source, &file.destination})
      *text = base::printable(*text, kPathBytesMax);
    for (std::string* const digest : {&file.digest_source, &file.digest_destination})
      *digest = base::printable(*digest, kNodeTextBytesMax);
  }
  return status;
}

Status admit_one(FileDone& m) { return check_names(m.missing.names); }
Status admit_one(ObjectFailed& m) { return check_names(m.names); }

Status admit_one(Failure& m) {
  m.message = base::printable(m.message, kTextBytesMax);
  return {};
}

Status admit_one(Pause& m) {
  m.node = base::printable(m.node, kNodeTextBytesMax);
  return {};
}

Status admit_one(Heartbeat& m) {
  if (!m.bottleneck) return {};
  m.bottleneck->evidence.resize(std::min(m.bottleneck->evidence.size(), verdict::kEvidenceMax));
  for (std::string& line : m.bottleneck->evidence) line = base::printable(line, kTextBytesMax);
  return {};
}

Status admit_one(ObjectState& m) { return check_ranges(m.held); }
Status admit_one(PartitionSent& m) { return check_range(m.range); }
Status admit_one(PartitionDone& m) { return check_ranges(m.ranges); }
Status admit_one(Need& m) { return check_ranges(m.ranges); }
Status admit_one(Want& m) { return check_ranges(m.ranges); }
Status admit_one(DigestsWanted& m) { return check_ranges(m.ranges); }
Status admit_one(NameDigests& m) {
  Status status = check_count("names", m.names.size(), kNamesPerDigests);
  for (size_t i = 0; status && i < m.names.size(); ++i) {
    status = check_text("name", m.names[i].path, kPathBytesMax);
    if (status) status = check_text("name", m.names[i].target, kPathBytesMax);
    if (status) status = check_count("digests of a name", m.names[i].values.size(), digests::kKinds.size());
  }
  return status;
}
Status admit_one(ExtentDigests& m) { return check_count("digests", m.digests.size(), kDigestsPerMessage); }

// Numbers, and what the negotiation checks (negotiation.h).
template <typename M>
Status admit_one(M&) {
  return {};
}

// ---- what each kind of message costs, beside its own size ----------------------------------------

size_t text_bytes(const std::vector<std::string>& texts) {
  size_t bytes = texts.size() * sizeof(std::string);
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

template <typename M>
size_t sources_bytes(const M& m) {
  size_t bytes = text_bytes(m.source_paths) + text_bytes(m.selection.names) +
                 m.selection.rules.size() * sizeof(selection::Rule);
  for (const selection::Rule& rule : m.selection.rules) bytes += rule.pattern.size();
  return bytes;
}
size_t more_bytes(const TransferRequest& m) { return sources_bytes(m); }
size_t more_bytes(const Order& m) { return sources_bytes(m) + m.grant.bytes() + m.destination.size(); }
size_t more_bytes(const Hello& m) {
  return (m.grant ? m.grant->bytes() : 0) + (m.move ? m.move->bytes() : 0) +
         (m.lease ? m.lease->name.size() : 0);
}
size_t more_bytes(const TransferReady& m) { return text_bytes(m.final_paths); }
size_t values_bytes(const digests::Values& values) {
  size_t bytes = values.size() * sizeof(digests::Value);
  for (const digests::Value& value : values) bytes += value.hex.size();
  return bytes;
}
size_t more_bytes(const TransferOffer& m) {
  size_t bytes = m.destination.size() + m.files.size() * sizeof(OfferedFile);
  for (const OfferedFile& file : m.files)
    bytes += file.name.size() + file.holes.size() * sizeof(recovery::Range) + file.attributes.user.size() +
             file.attributes.group.size() + 4 * file.attributes.kept_bytes() + values_bytes(file.expected);
  return bytes;
}
size_t names_bytes(const std::vector<catalog::FailedName>& names) {
  size_t bytes = names.size() * sizeof(catalog::FailedName);
  for (const catalog::FailedName& name : names) bytes += name.path.size();
  return bytes;
}
size_t more_bytes(const FileDone& m) { return names_bytes(m.missing.names); }
size_t more_bytes(const ObjectFailed& m) { return names_bytes(m.names); }
size_t more_bytes(const ObjectState& m) { return m.held.size() * sizeof(recovery::Range); }
size_t more_bytes(const PartitionDone& m) { return m.ranges.size() * sizeof(recovery::Range); }
size_t more_bytes(const Need& m) { return m.ranges.size() * sizeof(recovery::Range); }
size_t more_bytes(const Want& m) { return m.ranges.size() * sizeof(recovery::Range); }
size_t more_bytes(const DigestsWanted& m) { return m.ranges.size() * sizeof(recovery::Range); }
size_t more_bytes(const NameDigests& m) {
  size_t bytes = m.names.size() * sizeof(digests::Named);
  for (const digests::Named& name : m.names)
    bytes += name.path.size() + name.target.size() + values_bytes(name.values);
  return bytes;
}
size_t more_bytes(const ExtentDigests& m) { return m.digests.size() * sizeof(uint64_t); }
size_t more_bytes(const Failure& m) { return m.message.size(); }
size_t more_bytes(const Heartbeat& m) { return m.bottleneck ? text_bytes(m.bottleneck->evidence) : 0; }
size_t more_bytes(const Specification& m) {
  return (m.crc_kinds.size() + m.udp_ports.size()) * sizeof(uint32_t);
}
size_t more_bytes(const SpecificationSet& m) { return m.udp_ports.size() * sizeof(uint32_t); }
template <typename M>
size_t more_bytes(const M&) {
  return 0;
}

}  // namespace

Error incompatible(std::string message) { return {ErrorCode::kIncompatible, std::move(message)}; }

std::string_view message_name(const Message& message) {
  constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {"Hello",
                                                                                 "Specification",
                                                                                 "SpecificationSet",
                                                                                 "TransferRequest",
                                                                                 "TransferOffer",
                                                                                 "TransferReady",
                                                                                 "ObjectState",
                                                                                 "PartitionSent",
                                                                                 "PartitionDone",
                                                                                 "Need",
                                                                                 "FileDigest",
                                                                                 "FileDone",
                                                                                 "SessionDone",
                                                                                 "Heartbeat",
                                                                                 "Failure",
                                                                                 "Pause",
                                                                                 "RateLimit",
                                                                                 "ObjectFailed",
                                                                                 "Want",
                                                                                 "ExtentDigests",
                                                                                 "DigestsWanted",
                                                                                 "NameDigests",
                                                                                 "DigestProgress",
                                                                                 "Order",
                                                                                 "OrderState",
                                                                                 "OrderWish"};
  static_assert(!kNames.back().empty(), "each message has a name");
  return kNames[message.index()];
}

Status admit(Message* message) {
  return std::visit([](auto& m) { return admit_one(m); }, *message);
}

size_t memory_bytes(const Message& message) {
  return sizeof(Message) + std::visit([](const auto& m) { return more_bytes(m); }, message);
}

namespace {

// Each where it is a word, and no part of a path.
std::string replaced(const std::string& text, std::string_view words, const std::string& by) {
  constexpr std::string_view kBefore = " (\"'";
  constexpr std::string_view kBehind = " ,;:.)'\"";
  std::string out;
  size_t from = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    const size_t end = at + words.size();
    const bool begins = at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos;
    if (!begins || (end != text.size() && kBehind.find(text[end]) == std::string_view::npos)) continue;
    out += text.substr(from, at - from) + by;
    from = end;
  }
  return out + text.substr(from);
}

}  // namespace

// A node says "this node" of itself and "the peer" of its hearer: repeated here, both would mean the other.
Error error_of(const std::string& peer_name, const Failure& failure) {
  const bool known = failure.code > 0 && failure.code <= static_cast<uint32_t>(kErrorCodeLast);
  std::string text = replaced(failure.message, "this node", "node " + peer_name);
  text = replaced(text, "this host", "the host of node " + peer_name);
  for (const std::string_view relative : {"the peer", "this peer"})
    text = replaced(text, relative, "its peer");
  return {known ? static_cast<ErrorCode>(failure.code) : ErrorCode::kInternal,
          fmt::format("{}: {}", peer_name, text)};
}

Failure failure_of(const Error& error) {
  return {.code = static_cast<uint32_t>(error.code), .message = error.message};
}

}  // namespace sluice::transfer
