// The rest of a stream, whole.
//
// std::istreambuf_iterator is shorter, but throws where a disk cannot read a part of a file. A stream's own
// calls note that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <istream>
#include <string>

namespace sluice::base {

// Reads the stream to its end. If that fails on the way, `in.bad()` is true and errno has the reason; the
// text is then what came before.
inline std::string read_rest(std::istream& in) {
  std::string text;
  std::array<char, 65536> piece;
  do {
    in.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<size_t>(in.gcount()));
  } while (in);
  return text;
}

}  // namespace sluice::base
