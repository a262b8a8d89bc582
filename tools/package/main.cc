// sluice-manuals DIR: writes the manual pages there, while the package is built. See manuals.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tools/package/manuals.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sluice-manuals DIR\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const sluice::package::Page& page : sluice::package::manuals()) {
    std::ofstream out(directory / page.file);
    out << page.text;
    if (!out.flush()) {
      std::fprintf(stderr, "sluice-manuals: cannot write %s\n", (directory / page.file).c_str());
      return 1;
    }
  }
  return 0;
}
