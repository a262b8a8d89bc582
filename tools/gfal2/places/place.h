// A URL sluice://NODE[:PORT]/EXPORT/PATH, or file:///PATH of this host, as what a node is asked for.
//
// Pure; any thread. Paths are bytes: %XX in a sluice URL stands for any byte but NUL and '/'; all other
// characters mean themselves. What does not fit is thrown as a Problem, before anybody is asked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::gfal {

inline constexpr std::string_view kScheme = "sluice://";
inline constexpr std::string_view kFileScheme = "file:";

inline bool is_ours(std::string_view url) { return url.starts_with(kScheme); }
inline bool is_file(std::string_view url) { return url.starts_with(kFileScheme); }

struct Place {
  std::string node;  // as the URL says it; empty: a file of this host
  std::string port;  // digits; empty: none was said
  // EXPORT/PATH without empty parts; empty: the exports. Of a file of this host its absolute path.
  std::string path;
  bool names_directory = false;  // the URL ends in a slash

  std::string shown() const;  // for people: NODE:PATH
};

Place place_of(std::string_view url);

// The last part of a path, and what stands before it; "" of a path with one part.
std::string last_part(const std::string& path);
std::string parent_part(const std::string& path);

// A name of a list as the last part of a URL: whoever puts it behind a directory's URL means this very name.
std::string escaped(std::string_view name);

}  // namespace sluice::gfal
