// Runs every committed input through a fuzz target once: the corpus as a test, no libFuzzer.
// Each argument is a file of inputs (NAME.seeds, as tools/fuzz/seeds.py writes it), a folder of inputs, or
// one input; what is not there is passed over. An input that breaks the target ends the program; its name is
// the last one printed.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

class Replay {
 public:
  // False: it cannot be read, and that was said.
  bool all_of(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) return true;
    if (path.extension() == ".seeds") return seeds(path);
    if (!fs::is_directory(path, error)) return file(path);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(path, error)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return std::all_of(files.begin(), files.end(), [this](const fs::path& each) { return file(each); });
  }
  size_t inputs() const { return inputs_; }

 private:
  static bool cannot(const std::string& name, const char* reason) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), reason);
    return false;
  }

  void run(const std::string& name, const std::vector<uint8_t>& bytes) {
    std::printf("%s\n", name.c_str());
    std::fflush(stdout);  // before the target may abort
    (void)LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++inputs_;
  }

  bool file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    // An allocation of exactly this size, so that a sanitizer sees one byte more.
    const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) return cannot(path.string(), "cannot be read");
    run(path.string(), bytes);
    return true;
  }

  bool seeds(const fs::path& path) {
    std::ifstream in(path);
    std::string line;
    for (size_t number = 1; std::getline(in, line); ++number) {
      if (line.starts_with('#')) continue;
      const size_t space = std::min(line.find(' '), line.size());
      const std::string name = path.string() + ":" + std::to_string(number) + ": " + line.substr(0, space);
      const std::string_view digits = std::string_view(line).substr(std::min(space + 1, line.size()));
      if (digits.size() % 2 != 0) return cannot(name, "its bytes are no hex");
      std::vector<uint8_t> bytes(digits.size() / 2);
      for (size_t i = 0; i < bytes.size(); ++i) {
        const char* const at = digits.data() + 2 * i;
        const auto [end, failure] = std::from_chars(at, at + 2, bytes[i], 16);
        if (failure != std::errc() || end != at + 2) return cannot(name, "its bytes are no hex");
      }
      run(name, bytes);
    }
    return true;
  }

  size_t inputs_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE.seeds|FOLDER|FILE...\n", argv[0]);
    return 2;
  }
  Replay replay;
  for (int i = 1; i < argc; ++i) {
    if (!replay.all_of(argv[i])) return 1;
  }
  std::printf("%zu inputs\n", replay.inputs());
  return replay.inputs() == 0 ? 1 : 0;  // a corpus that is not there tests nothing
}
