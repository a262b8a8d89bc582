// Reads node.toml against the schema. Of several errors the first in the file is reported.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "dataplane/base/config/apart.h"
#include "dataplane/base/config/schema.h"
#include "dataplane/base/config/toml_text.h"
#include "dataplane/base/config/values.h"

namespace sluice::config {
namespace {

constexpr size_t kFileBytesMax = 1U << 20;
constexpr size_t kExportsMax = 64;
constexpr size_t kQuotasMax = 1024;  // of an export

class Reader {
 public:
  Reader(const std::filesystem::path& directory, std::string_view origin) : origin_(origin) {
    node_.directory = directory;
  }

  Result<Node> read(const toml::table& root) {
    for (const auto& [name, value] : root) read_section(name.str(), line_of(name), value);
    check_required();
    if (!failed_) check_together();
    if (failed_) return Error{ErrorCode::kConfiguration, message_};
    return std::move(node_);
  }

 private:
  template <typename T>
  static uint32_t line_of(const T& thing) {
    return thing.source().begin.line;
  }

  // Keeps the error that stands first in the file; line 0 (about the whole file) comes last.
  void fail(uint32_t line, const std::string& problem) {
    const uint32_t order = line == 0 ? UINT32_MAX : line;
    if (failed_ && order >= order_) return;
    failed_ = true;
    order_ = order;
    message_ = std::string(origin_) + (line == 0 ? "" : ":" + std::to_string(line)) + ": " + problem;
  }
  // What could be read; otherwise why not is the error.
  template <typename T>
  std::optional<T> good(uint32_t line, Result<T> value) {
    if (value) return std::optional<T>(std::move(*value));
    fail(line, value.error().message);
    return std::nullopt;
  }

  void read_section(std::string_view name, uint32_t line, const toml::node& value) {
    if (!section_known(name)) {
      if (value.is_table() || value.is_array_of_tables()) {
        fail(line,
             "unknown section [" + printable(name) + "]; the nearest known one is " + nearest_section(name));
      } else {
        fail(line, "unknown key " + printable(name) + " outside any section; the nearest known one is " +
                       nearest_key("", name));
      }
      return;
    }
    if (name == "export") return read_exports(line, value);
    const toml::table* table = value.as_table();
    if (table == nullptr)
      return fail(line, std::string(name) + " must be a section: write [" + std::string(name) + "]");
    for (const auto& [key_name, key_value] : *table) {
      const Key* key = find_key(name, key_name.str());
      if (key == nullptr) {
        unknown_key(name, key_name);
      } else {
        read_value(*key, line_of(key_name), key_value);
        seen_.insert(key);
      }
    }
  }

  void unknown_key(std::string_view section, const toml::key& name) {
    fail(line_of(name), "unknown key " + printable(name.str()) + " in " + section_header(section) +
                            "; the nearest known one is " + nearest_key(section, name.str()));
  }

  void read_value(const Key& key, uint32_t line, const toml::node& value) {
    if (key.type == ValueType::kText || key.type == ValueType::kChoice) {
      if (auto text = good(line, text_value(key, value))) store_text(key, std::move(*text));
    } else if (key.type == ValueType::kCores) {
      if (auto cores = good(line, cores_value(key, value))) node_.cores = std::move(*cores);
    } else if (const auto number = good(line, number_value(key, value))) {
      store_number(key, *number);
    }
  }

  void store_text(const Key& key, std::string text) {
    if (const auto* f = std::get_if<std::string Node::*>(&key.field)) node_.*(*f) = std::move(text);
    if (const auto* f = std::get_if<const options::Option*>(&key.field)) {
      if (const auto number = (*f)->of_word(text, key.name)) (*f)->set_value(node_.transfer, *number);
    }
  }

  // The schema's range lies within the field's type (tested).
  void store_number(const Key& key, uint64_t number) {
    if (const auto* f = std::get_if<uint16_t Node::*>(&key.field))
      node_.*(*f) = static_cast<uint16_t>(number);
    if (const auto* f = std::get_if<uint32_t Node::*>(&key.field))
      node_.*(*f) = static_cast<uint32_t>(number);
    if (const auto* f = std::get_if<uint64_t Node::*>(&key.field)) node_.*(*f) = number;
    if (const auto* f = std::get_if<const options::Option*>(&key.field)) {
      const int64_t without = (*f)->value_in(options::Options());
      (*f)->set_value(node_.transfer, number == 0 && key.min == 0 ? without : static_cast<int64_t>(number));
    }
  }

  void read_exports(uint32_t line, const toml::node& value) {
    const toml::array* array = value.as_array();
    if (array == nullptr || !(array->empty() || array->is_homogeneous<toml::table>()))
      return fail(line, "export must be a repeated section: write [[export]] with two brackets");
    if (array->size() > kExportsMax)
      return fail(line, "more than 64 [[export]] sections; name common parents instead");
    for (const toml::node& element : *array) read_export(*element.as_table());
  }

  void read_export(const toml::table& table) {
    Export item;
    for (const auto& [name, value] : table) read_export_key(name, value, &item);
    for (const std::string_view name : {"name", "path"}) {
      if (!table.contains(name))
        fail(line_of(table), "[[export]] without " + std::string(name) + "; add the key");
    }
    if (const std::string problem = item.peers_problem(); !problem.empty())
      fail(line_of(table), "[[export]] peers: " + problem);
    if (const std::string problem = item.quotas_problem(); !failed_ && !problem.empty())
      fail(line_of(table), "[[export.quota]]: " + problem);
    for (const Export& other : node_.exports) {
      if (!item.name.empty() && other.name == item.name)
        fail(line_of(table),
             "[[export]] name = " + printable(item.name) + " is there twice; choose another name");
      if (!item.path.empty() && other.path == item.path)
        fail(line_of(table),
             "[[export]] path = " + printable(item.path.string()) + " is exported twice; keep one");
    }
    node_.exports.push_back(std::move(item));
  }

  void read_export_key(const toml::key& name, const toml::node& value, Export* item) {
    const uint32_t line = line_of(name);
    if (name.str() == "quota") return read_quotas(line, value, item);
    const Key* key = find_key("export", name.str());
    if (key == nullptr) return unknown_key("export", name);
    if (key->type == ValueType::kPeers) {
      if (auto peers = good(line, peers_value(*key, value))) item->peers = std::move(*peers);
      return;
    }
    const auto text = good(line, text_value(*key, value));
    if (!text) return;
    if (key->name == "name") item->name = *text;
    if (key->name == "path") item->path = normal(*text);
    if (key->name == "owners") item->owners = *text == "yes";
    if (key->name == "acls") item->acls = *text == "yes";
    if (key->name == "direct") item->direct = *text == "yes";
    if (key->name == "mode") {
      item->read = text->find('r') != std::string::npos;
      item->write = text->find('w') != std::string::npos;
      item->manage = text->find('m') != std::string::npos;
    }
  }

  void read_quotas(uint32_t line, const toml::node& value, Export* item) {
    const toml::array* array = value.as_array();
    if (array == nullptr || !(array->empty() || array->is_homogeneous<toml::table>()))
      return fail(line, "quota must be a repeated section: write [[export.quota]] with two brackets");
    if (array->size() > kQuotasMax)
      return fail(line, "more than 1024 [[export.quota]] sections of an export");
    for (const toml::node& element : *array) {
      Quota quota;
      for (const auto& [name, one] : *element.as_table()) read_quota_key(name, one, &quota);
      item->quotas.push_back(std::move(quota));
    }
  }

  void read_quota_key(const toml::key& name, const toml::node& value, Quota* quota) {
    const Key* key = find_key("export.quota", name.str());
    if (key == nullptr) return unknown_key("export.quota", name);
    if (const auto* field = std::get_if<uint64_t Quota::*>(&key->field)) {
      if (const auto number = good(line_of(name), number_value(*key, value))) quota->*(*field) = *number;
    } else if (auto text = good(line_of(name), text_value(*key, value))) {
      (name.str() == "user" ? quota->user : quota->peer) = std::move(*text);
    }
  }

  void check_required() {
    for (const Key& key : schema()) {
      if (key.required && !is_of_exports(key.section) && !seen_.contains(&key))
        fail(0, in_section(key.section, key.name) + " is missing; add it");
    }
  }

  // What no single key shows.
  void check_together() {
    if (!node_.cores.empty() && node_.cores.size() != node_.workers)
      fail(0, "[dataplane] cores lists " + std::to_string(node_.cores.size()) +
                  " CPUs for workers = " + std::to_string(node_.workers) + "; list one per worker, or none");
    if (node_.partition_bytes % node_.extent_bytes != 0)
      fail(0, "[transfer] partition_bytes = " + format_size(node_.partition_bytes) +
                  " is not a multiple of [dataplane] extent_bytes = " + format_size(node_.extent_bytes));
    if (node_.extents_per_worker == 0) {
      const uint64_t each = (uint64_t{node_.memory_mib} << 20) / 4 * 3 / node_.workers / node_.extent_bytes;
      node_.extents_per_worker = static_cast<uint32_t>(std::clamp<uint64_t>(each, kExtentsMin, kExtentsMax));
    }
    const uint64_t extents_bytes = uint64_t{node_.workers} * node_.extents_per_worker * node_.extent_bytes;
    if (extents_bytes >= uint64_t{node_.memory_mib} << 20)
      fail(0, "[dataplane] memory_mib = " + std::to_string(node_.memory_mib) + " cannot hold the extents (" +
                  format_size(extents_bytes) + "); raise it, or lower extents_per_worker");
    if (node_.ca_file.empty() && !(node_.crl_file + node_.ca_domain).empty())
      fail(0, "[control] has crl_file or ca_domain without ca_file; set ca_file, or remove them");
    if (node_.users_group.empty() && !node_.users_map_file.empty())
      fail(0,
           "[control] users_map_file without users_group: files are opened as members of that group alone; "
           "set "
           "users_group, or remove users_map_file");
    const bool sockets = node_.device == kSocketDevice;
    if (!sockets && node_.address4.empty() && node_.address6.empty())
      fail(0, "[port] has a device but no address; set address4 or address6");
    if (!node_.gateway4.empty() && node_.address4.empty())
      fail(0, "[port] gateway4 without address4; set address4, or remove gateway4");
    if (!node_.gateway6.empty() && node_.address6.empty())
      fail(0, "[port] gateway6 without address6; set address6, or remove gateway6");
    if (sockets && !(node_.gateway4 + node_.gateway6 + node_.neighbours).empty())
      fail(0,
           "[port] gateway4, gateway6 and neighbours are for DPDK devices: the routes of the host are used "
           "with device = \"udp\"; remove them");
    check_fallback();
  }

  void check_fallback() {
    if (node_.fallback == kNoFallback) {
      if (!(node_.fallback_address4 + node_.fallback_address6).empty())
        fail(0,
             "[port] fallback_address4 and fallback_address6 are for fallback = \"udp\"; set it, or remove "
             "them");
      return;
    }
    if (!can_vanish(node_.device))
      fail(0,
           "[port] fallback is for a device that can vanish: a card, net_af_packet or net_af_xdp; remove it");
  }

  std::string_view origin_;
  Node node_;
  std::set<const Key*> seen_;
  bool failed_ = false;
  uint32_t order_ = 0;
  std::string message_;
};

}  // namespace

Result<Node> parse(std::string_view text, const std::filesystem::path& directory, std::string_view origin) {
  const auto table = parse_toml(text, origin);
  if (!table) return table.error();
  return Reader(directory, origin).read(*table);
}

Result<Node> load(const std::filesystem::path& directory) {
  std::error_code ignored;
  const std::filesystem::path absolute = normal(std::filesystem::absolute(directory, ignored));
  const std::filesystem::path file = absolute / "node.toml";
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kFileBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    const int reason = errno;
    return Error{ErrorCode::kConfiguration, file.string() + ": " +
                                                (reason != 0 ? std::strerror(reason) : "cannot be read") +
                                                "; create a node with: sluice node init"};
  }
  Result<Node> node = parse(text, absolute, file.string());
  if (!node) return node;
  if (Status apart = check_apart(*node, Paths::kAsWritten); !apart) return apart.error();
  return node;
}

}  // namespace sluice::config
