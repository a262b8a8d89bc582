// What people read: the reference table for docs/REFERENCE.md, and the node.toml of a new node.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

std::string type_name(const Key& key) {
  switch (key.type) {
    case ValueType::kText:
    case ValueType::kChoice:
      return "string";
    case ValueType::kInteger:
      return "integer, " + std::string(key.unit);
    case ValueType::kSize:
      return "size, " + std::string(key.unit);
    case ValueType::kRate:
      return "rate, " + std::string(key.unit);
    case ValueType::kCores:
      return "array of integers";
    case ValueType::kPeers:
      return "array of strings";
  }
  return "";
}

std::string_view section_meaning(std::string_view section) {
  if (section == "node") return "Who this node is.";
  if (section == "control") return "The control daemon.";
  if (section == "transfer") return "Defaults of a session; most can be set for one on the command line.";
  if (section == "port") return "The data port.";
  if (section == "dataplane") return "Memory, threads and buffers of the dataplane.";
  if (section == "log")
    return "How much each component logs; changed while it runs by 'sluice node log-level'.";
  return "";
}

// `text` as comment lines of bounded width.
std::string comment(std::string_view text) {
  constexpr size_t kWidth = 96;
  std::string out;
  std::string line = "#";
  while (!text.empty()) {
    const size_t blank = text.find(' ');
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    if (line.size() + 1 + word.size() > kWidth && line.size() > 1) {
      out += line + "\n";
      line = "#";
    }
    line += ' ';
    line += word;
  }
  return out + line + "\n";
}

std::string without_backticks(std::string text) {
  std::erase(text, '`');
  return text;
}

Node node_from(const TemplateOptions& options) {
  Node node;
  node.name = options.name;
  if (!options.listen.empty()) node.listen = options.listen;
  node.state_dir = options.state_dir;
  node.control_group = options.control_group;
  node.dataplane_group = options.dataplane_group;
  if (!options.device.empty()) node.device = options.device;
  node.address4 = options.address4;
  node.address6 = options.address6;
  node.gateway4 = options.gateway4;
  node.gateway6 = options.gateway6;
  node.mtu = options.mtu;
  node.udp_port_base = options.udp_port_base;
  if (!options.memory.empty()) node.memory = options.memory;
  node.memory_mib = options.memory_mib;
  node.workers = options.workers;
  node.cores = options.cores;
  if (!options.poll.empty()) node.poll = options.poll;
  node.transfer.rate_bps = options.rate_bps;
  node.ca_file = options.ca_file;
  node.crl_file = options.crl_file;
  node.ca_domain = options.ca_domain;
  node.addresses_file = options.addresses_file;
  return node;
}

std::string exports_text(const std::vector<Export>& exports) {
  std::string out =
      "\n# Directories whose files may be sent (mode \"r\"), received (\"w\") or both (\"rw\"). With \"m\" "
      "as well\n"
      "# (\"rwm\") peers may manage them: make directories, move and remove. Nothing outside them is ever\n"
      "# opened. With peers = [\"beta\", \"gamma:r\"] only these may, gamma no more than read. Repeat the "
      "section\n"
      "# for each. [[export.quota]] below one limits what peers begin there: session_bytes, session_files,\n"
      "# sessions_max, rate; of one peer with peer = \"NAME\", of a user of this host with user = "
      "\"NAME\".\n";
  if (exports.empty()) out += "#\n# [[export]]\n# name = \"data\"\n# path = \"/srv/data\"\n# mode = \"rw\"\n";
  for (const Export& item : exports) {
    out += "\n[[export]]\nname = " + toml_string(item.name) + "\npath = " + toml_string(item.path.string()) +
           "\nmode = " + toml_string(item.mode()) + "\n";
  }
  return out;
}

std::string export_default(const Key& key) {
  if (key.name == "peers") return "every trusted peer";
  if (key.section == "export")
    return "`\"" + std::string(key.choices.substr(0, key.choices.find(' '))) + "\"`";
  return key.name == "peer" ? "every peer" : key.name == "user" ? "of peers" : "no limit";
}

}  // namespace

std::string reference_markdown() {
  const Node defaults;
  std::string out =
      "| section | key | type, unit | default | allowed | meaning |\n"
      "| --- | --- | --- | --- | --- | --- |\n";
  for (const Key& key : schema()) {
    std::string value = "`" + toml_value(key, defaults) + "`";
    if (is_of_exports(key.section)) value = export_default(key);
    out += "| `" + section_header(key.section) + "` | `" + std::string(key.name) + "` | " + type_name(key) +
           " | " + (key.required ? "required" : value) + " | " + allowed_values(key) + " | " +
           std::string(key.meaning) + " |\n";
  }
  return out;
}

std::string make_template(const TemplateOptions& options) {
  const Node node = node_from(options);
  const Node defaults;
  std::string out =
      "# Configuration of a Sluice node. A key that is commented out shows its default. Sizes: 64MiB, 1G (K "
      "=\n"
      "# 1024); rates in bit/s: 10G, 800M (K = 1000). Both daemons read this file when they start.\n";
  std::string_view section;
  for (const Key& key : schema()) {
    if (is_of_exports(key.section)) break;
    if (key.section != section) {
      section = key.section;
      out += "\n# " + std::string(section_meaning(section)) + "\n" + section_header(section) + "\n";
    }
    const std::string value = toml_value(key, node);
    const bool live = key.required || value != toml_value(key, defaults);
    out += comment(without_backticks(std::string(key.meaning) + " (" + allowed_values(key) + ")"));
    out += std::string(live ? "" : "# ") + std::string(key.name) + " = " + value + "\n";
  }
  return out + exports_text(options.exports);
}

}  // namespace sluice::config
