// Reads node.toml against the schema. Of several errors the first in the file is reported.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/config.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "dataplane/base/config/schema.h"
#include "dataplane/base/config/toml_text.h"

namespace sluice::config {
namespace {

constexpr size_t kFileBytesMax = 1U << 20;
constexpr size_t kExportsMax = 64;
constexpr size_t kCoresMax = 16;

std::string printable(std::string_view text) {
  constexpr size_t kShown = 60;
  return toml_string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
}

// Edit distance (insertions, deletions, replacements), for "did you mean".
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// Without "." and double or trailing slashes; ".." was refused before.
std::filesystem::path normal(const std::filesystem::path& path) {
  const std::filesystem::path clean = path.lexically_normal();
  return clean.has_filename() || clean == clean.root_path() ? clean : clean.parent_path();
}

std::string in_section(std::string_view section, std::string_view key) {
  return (section == "export" ? "[[export]] " : "[" + std::string(section) + "] ") + std::string(key);
}

// The known key that was probably meant; one in another section counts as a little further away.
std::string nearest_key(std::string_view section, std::string_view name) {
  const Key* best = nullptr;
  size_t best_distance = SIZE_MAX;
  for (const Key& key : schema()) {
    const size_t d = 2 * distance(name.substr(0, 64), key.name) + (key.section == section ? 0 : 1);
    if (d < best_distance) {
      best_distance = d;
      best = &key;
    }
  }
  return in_section(best->section, best->name);
}

std::string nearest_section(std::string_view name) {
  std::string_view best;
  for (const Key& key : schema()) {
    if (best.empty() || distance(name.substr(0, 64), key.section) < distance(name.substr(0, 64), best))
      best = key.section;
  }
  return best == "export" ? "[[export]]" : "[" + std::string(best) + "]";
}

bool section_known(std::string_view name) {
  return std::any_of(schema().begin(), schema().end(), [&](const Key& key) { return key.section == name; });
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const Key& key : schema()) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::string_view type_words(ValueType type) {
  switch (type) {
    case ValueType::kText:
    case ValueType::kChoice:
      return "must be a string in double quotes";
    case ValueType::kInteger:
      return "must be a whole number";
    case ValueType::kSize:
      return "must be a size, such as \"64MiB\" or a number of bytes";
    case ValueType::kRate:
      return "must be a rate, such as \"10G\" or a number of bit/s";
    case ValueType::kCores:
      return "must be an array of CPU numbers, such as [2, 3]";
    case ValueType::kPeers:
      return "must be an array of names of peers, such as [\"beta\", \"gamma:r\"]";
  }
  return "";
}

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
  void fail_value(const Key& key, uint32_t line, std::string_view value, std::string_view problem) {
    fail(line, in_section(key.section, key.name) + " = " + std::string(value) + ": " + std::string(problem));
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
    fail(line_of(name), "unknown key " + printable(name.str()) + " in [" + std::string(section) +
                            "]; the nearest known one is " + nearest_key(section, name.str()));
  }

  void read_value(const Key& key, uint32_t line, const toml::node& value) {
    if (key.type == ValueType::kText || key.type == ValueType::kChoice) {
      const auto* field = std::get_if<std::string Node::*>(&key.field);
      if (auto text = read_text(key, line, value)) node_.*(*field) = *text;
    } else if (key.type == ValueType::kCores) {
      read_cores(key, line, value);
    } else {
      read_number(key, line, value);
    }
  }

  std::optional<std::string> read_text(const Key& key, uint32_t line, const toml::node& value) {
    const auto* text = value.as_string();
    if (text == nullptr) {
      fail(line, in_section(key.section, key.name) + ": " + std::string(type_words(key.type)));
      return std::nullopt;
    }
    const std::string& given = text->get();
    if (key.type == ValueType::kChoice) {
      const std::string known = " " + std::string(key.choices) + " ";
      const bool one_word = !given.empty() && given.find(' ') == std::string::npos;
      if (!one_word || known.find(" " + given + " ") == std::string::npos) {
        std::string words = allowed_values(key);
        std::replace(words.begin(), words.end(), '`', '"');
        fail_value(key, line, printable(given), "must be one of " + words);
        return std::nullopt;
      }
    }
    const std::string_view problem = key.text_problem ? key.text_problem(given) : "";
    if (!problem.empty()) {
      fail_value(key, line, printable(given), problem);
      return std::nullopt;
    }
    return given;
  }

  void read_number(const Key& key, uint32_t line, const toml::node& value) {
    uint64_t number = 0;
    std::string shown;
    if (const auto* integer = value.as_integer()) {
      shown = std::to_string(integer->get());
      if (integer->get() < 0) return fail_value(key, line, shown, "must be " + allowed_values(key));
      number = static_cast<uint64_t>(integer->get());
    } else if (const auto* text = value.as_string(); text != nullptr && key.type != ValueType::kInteger) {
      shown = printable(text->get());
      const auto parsed = key.type == ValueType::kRate ? parse_rate(text->get()) : parse_size(text->get());
      if (!parsed) return fail_value(key, line, shown, type_words(key.type));
      number = *parsed;
    } else {
      return fail(line, in_section(key.section, key.name) + ": " + std::string(type_words(key.type)));
    }
    if (number < key.min || number > key.max) {
      std::string words = allowed_values(key);
      std::erase(words, '`');
      return fail_value(key, line, shown,
                        "must be " + words + (key.unit.empty() ? "" : " " + std::string(key.unit)));
    }
    const std::string_view problem = key.number_problem ? key.number_problem(number) : "";
    if (!problem.empty()) return fail_value(key, line, shown, problem);
    store_number(key, number);
  }

  // The schema's range lies within the field's type (tested).
  void store_number(const Key& key, uint64_t number) {
    if (const auto* f = std::get_if<uint16_t Node::*>(&key.field))
      node_.*(*f) = static_cast<uint16_t>(number);
    if (const auto* f = std::get_if<uint32_t Node::*>(&key.field))
      node_.*(*f) = static_cast<uint32_t>(number);
    if (const auto* f = std::get_if<uint64_t Node::*>(&key.field)) node_.*(*f) = number;
  }

  void read_cores(const Key& key, uint32_t line, const toml::node& value) {
    const std::string where = in_section(key.section, key.name) + ": ";
    const toml::array* array = value.as_array();
    if (array == nullptr) return fail(line, where + std::string(type_words(key.type)));
    std::vector<int> cores;
    for (const toml::node& element : *array) {
      const auto* number = element.as_integer();
      if (number == nullptr) return fail(line, where + std::string(type_words(key.type)));
      if (number->get() < 0 || number->get() > static_cast<int64_t>(key.max))
        return fail(line, where + "CPU numbers must be 0.." + std::to_string(key.max));
      const int core = static_cast<int>(number->get());
      if (std::find(cores.begin(), cores.end(), core) != cores.end())
        return fail(line,
                    where + "CPU " + std::to_string(core) + " is listed twice; each worker needs its own");
      if (cores.size() == kCoresMax)
        return fail(line, where + "more CPUs than the 16 workers that are possible");
      cores.push_back(core);
    }
    node_.cores = std::move(cores);
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
    for (const auto& [name, value] : table) {
      const Key* key = find_key("export", name.str());
      if (key == nullptr) {
        unknown_key("export", name);
        continue;
      }
      if (key->type == ValueType::kPeers) {
        item.peers = read_peers(*key, line_of(name), value);
        continue;
      }
      const auto text = read_text(*key, line_of(name), value);
      if (!text) continue;
      if (key->name == "name") item.name = *text;
      if (key->name == "path") item.path = normal(*text);
      if (key->name == "owners") item.owners = *text == "yes";
      if (key->name == "mode") {
        item.read = text->find('r') != std::string::npos;
        item.write = text->find('w') != std::string::npos;
        item.manage = text->find('m') != std::string::npos;
      }
    }
    for (const std::string_view name : {"name", "path"}) {
      if (!table.contains(name))
        fail(line_of(table), "[[export]] without " + std::string(name) + "; add the key");
    }
    if (const std::string problem = item.peers_problem(); !problem.empty())
      fail(line_of(table), "[[export]] peers: " + problem);
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

  std::vector<ExportPeer> read_peers(const Key& key, uint32_t line, const toml::node& value) {
    std::vector<ExportPeer> peers;
    const toml::array* array = value.as_array();
    if (array == nullptr || !(array->empty() || array->is_homogeneous<std::string>())) {
      fail(line, in_section(key.section, key.name) + ": " + std::string(type_words(key.type)));
      return peers;
    }
    for (const toml::node& element : *array) {
      const std::string& text = element.as_string()->get();
      if (std::optional<ExportPeer> peer = ExportPeer::parse(text)) {
        peers.push_back(std::move(*peer));
      } else {
        fail_value(key, line, printable(text), "must be the name of a peer, or NAME:MODE");
      }
    }
    return peers;
  }

  void check_required() {
    for (const Key& key : schema()) {
      if (key.required && key.section != "export" && !seen_.contains(&key))
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
  return parse(text, absolute, file.string());
}

}  // namespace sluice::config
