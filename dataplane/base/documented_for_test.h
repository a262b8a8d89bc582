// What docs/WIRE.md shows, byte for byte, for tests that hold the code to it.
//
// The test's target defines SLUICE_SOURCE_DIR.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice::base {

inline std::string wire_document() {
  const std::ifstream file(SLUICE_SOURCE_DIR "/docs/WIRE.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The block of hex digits behind <!-- golden: NAME -->.
inline std::string documented_bytes(const std::string& name) {
  const std::string document = wire_document();
  const size_t mark = document.find("<!-- golden: " + name + " -->");
  EXPECT_NE(mark, std::string::npos) << name;
  const size_t begin = document.find("```\n", mark) + 4;
  std::istringstream digits(document.substr(begin, document.find("```", begin) - begin));
  std::string bytes;
  for (uint32_t byte = 0; digits >> std::hex >> byte;) bytes.push_back(static_cast<char>(byte));
  return bytes;
}

}  // namespace sluice::base
