// Any words on the command line: a target, a local path or a request, or one line that says what is wrong,
// which cannot steer a terminal. The first byte of each word is its length.
// SPDX-License-Identifier: Apache-2.0
#include "control/client/requests.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/input_for_fuzz.h"
#include "tools/cli/format.h"
#include "tools/cli/names_format.h"
#include "tools/cli/target.h"

namespace {

using namespace sluice;
using namespace sluice::cli;

bool quiet(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  }
  return is_utf8(text);
}

template <typename T>
bool good(const Result<T>& result) {
  if (result) return true;
  fuzz::require(!result.error().message.empty() && quiet(result.error().message), "one quiet line says why");
  return false;
}

void check_path(const std::string& path, const std::string& from) {
  if (!api::is_memory_source(path) && !api::is_null_destination(path)) {
    fuzz::require(path.starts_with('/') && path.find("//") == std::string::npos &&
                      path.find("/./") == std::string::npos,
                  "a local path becomes absolute and plain");
  }
  fuzz::require(is_utf8(path) && path.size() <= from.size() + 32, "and is no longer than it must be");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::string> words;
  while (!input.empty() && words.size() < 6) words.push_back(input.text(input.take<uint8_t>()));
  for (const std::string& word : words) {
    fuzz::require(quiet(printable(word)), "printable text is quiet");
    const std::string name = shorten(printable(word), 20);
    fuzz::require(display_width(name) <= 20 && quiet(name), "and gets as short as is asked");
    fuzz::require(quiet(escaped(word)), "and so are names of other nodes, whatever their bytes");
    const auto target = parse_target(word);
    if (good(target)) {
      fuzz::require(config::valid_node_name(target->node) && !target->path.empty() &&
                        target->node + ":" + target->path == word,
                    "a target is NODE:PATH");
    }
    const auto local = local_path(word, "/work");
    if (good(local)) check_path(*local, word);
    const auto again = local ? local_path(*local, "/elsewhere") : local;
    if (local) fuzz::require(again && *again == *local, "an absolute path stays");
  }
  if (const auto send = send_request(words, "/work"); good(send)) {
    fuzz::require(send->sources_size() == static_cast<int>(words.size()) - 1, "every source is sent");
  }
  if (const auto get = get_request(words, {}, "/work"); good(get)) {
    fuzz::require(get->sources_size() == static_cast<int>(words.size()) - 1, "every source is got");
  }
  return 0;
}
