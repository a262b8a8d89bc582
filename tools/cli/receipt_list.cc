// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/receipt_list.h"

#include <algorithm>
#include <utility>

#include "control/digests/kind.h"
#include "control/identity/identity.h"
#include "control/identity/rotation.h"
#include "tools/cli/receipt.h"

namespace sluice::cli {
namespace {

std::string last_part(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.find_last_of('/') + 1));
}

// From the part on that is what is got now: the session of the receipt may have had it in another directory.
std::string name_beneath(const std::string& path, const std::vector<std::string>& sources) {
  const std::string slashed = "/" + path + "/";
  for (const std::string& source : sources) {
    const size_t at = slashed.find("/" + last_part(source) + "/");
    if (at != std::string::npos) return slashed.substr(at + 1, slashed.size() - at - 2);
  }
  return last_part(path);
}

digests::Values values_of_file(const api::Json& file, const std::string& crc) {
  digests::Values values;
  const auto add = [&](const std::string& name, const api::Json& hex) {
    const auto kind = digests::kind_named(name);
    if (!kind || !hex.is_string()) return;
    const auto digits = hex.get<std::string>();
    const bool all = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (all && digits.size() == digests::hex_digits_of(*kind))
      values.push_back({.kind = *kind, .hex = digits});
  };
  add(crc, file.value("digest", api::Json()));
  const api::Json more = file.value("digests", api::Json::object());
  for (const auto& [kind, hex] : more.items())
    if (kind != crc) add(kind, hex);
  std::ranges::sort(values, {}, &digests::Value::kind);
  return values;
}

std::string text_of(const api::Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string signer_known_as(const Context& context, const std::string& signer) {
  const Result<std::filesystem::path> directory = context.existing_node_directory();
  if (!directory) return "";
  if (const auto self = identity::load(*directory); self && self->fingerprint == signer)
    return "this node, " + self->name;
  const auto peers = identity::load_peers(*directory);
  if (!peers) return "";
  for (const identity::Peer& peer : *peers) {
    if (peer.fingerprint == signer) return "peer " + peer.name;
  }
  const auto former = identity::load_former(*directory);
  for (const identity::Former& one : former ? *former : std::vector<identity::Former>()) {
    if (one.fingerprint == signer)
      return (one.name.empty() ? "this node" : "peer " + one.name) + ", by a key that it has no more";
  }
  return "";
}

bool looks_like_receipt(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '{';
}

Result<std::vector<manifest::Entry>> entries_of_receipt(const Context& context, std::string_view text,
                                                        const std::vector<std::string>& sources) {
  const Result<CheckedReceipt> receipt = check_receipt(text);
  if (!receipt) return receipt.error();
  if (signer_known_as(context, receipt->signer).empty())
    return Error{
        ErrorCode::kPeerUntrusted,
        "a good receipt, of a key that nobody here knows: " + receipt->signer +
            "; trust the node that signed it, or write a list with 'sluice verify --write-manifest'"};
  std::vector<manifest::Entry> entries;
  const std::string crc = text_of(receipt->statement, "crc");
  const api::Json files = receipt->statement.value("files", api::Json::array());
  for (const api::Json& file : files) {
    if (!file.is_object() || file.value("names", api::Json(1)) != 1) continue;  // a pack of small files
    manifest::Entry entry{.name = name_beneath(text_of(file, "source"), sources),
                          .size_bytes = {},
                          .values = values_of_file(file, crc)};
    const bool is_new =
        std::ranges::none_of(entries, [&](const manifest::Entry& each) { return each.name == entry.name; });
    if (!entry.name.empty() && !entry.values.empty() && is_new) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace sluice::cli
