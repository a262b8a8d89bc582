// Any path from an operator or a peer, in a folder with links that lead out of it: nothing outside the
// export is ever reached, and a name that is accepted is one plain component.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "control/exports/beneath.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
namespace fs = std::filesystem;

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("sluice-beneath-fuzz-" + std::to_string(::getpid()))) {
    fs::create_directories(path / "root/d/e");
    for (const char* name : {"secret", "root/f", "root/d/f", "root/d/e/f"})
      UniqueFd(::open((path / name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    fs::create_symlink("../secret", path / "root/l");
    fs::create_symlink("/", path / "root/d/l");
    fs::create_symlink("e", path / "root/d/i");
    root = UniqueFd(::open((path / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    prefix = fs::canonical(path / "root").string();
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
  UniqueFd root;
  std::string prefix;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parts = exports::components(text);
  if (parts) {
    for (const std::string& part : *parts) {
      fuzz::require(!part.empty() && part != "." && part != ".." && part.find('/') == std::string::npos &&
                        part.find('\0') == std::string::npos,
                    "components are plain");
    }
    const std::string joined = exports::join(*parts, 0, parts->size());
    const auto again = exports::components(joined);
    fuzz::require(again && *again == *parts, "and stay what they are");
  }
  // As it stands, without that check: the system must hold it too.
  const UniqueFd fd = exports::open_beneath(folder.root.get(), text, O_PATH | O_NOFOLLOW);
  if (fd) {
    char reached[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
    fuzz::require(::readlink(link.c_str(), reached, sizeof reached - 1) > 0, "what was opened has a name");
    fuzz::require(std::string_view(reached).starts_with(folder.prefix), "beneath the root");
  }
  if (exports::valid_file_name(text)) {
    const auto one = exports::components(text);
    fuzz::require(one && one->size() == 1 && one->front() == text, "a file name is one component");
  }
  const std::string shown = exports::printable(text);
  for (const char c : shown) {
    fuzz::require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F, "what is shown is one quiet line");
  }
  return 0;
}
