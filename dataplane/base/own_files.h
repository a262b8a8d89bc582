// Where the files lie that were installed with this program.
//
// A self-contained bundle (tools/package/bundle.py) starts its programs by its own dynamic loader, so that
// /proc/self/exe names ROOT/lib/ld-linux-x86-64.so.2 there, and not the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <system_error>

namespace sluice::base {

inline constexpr std::string_view kLoaderName = "ld-linux-x86-64.so.2";

// As the kernel names it; empty where /proc is not mounted.
inline std::filesystem::path own_executable() {
  std::error_code missing;
  return std::filesystem::read_symlink("/proc/self/exe", missing);
}

// The bundle's root; empty: the program runs from none.
inline std::filesystem::path bundle_of(const std::filesystem::path& executable) {
  if (executable.filename() != kLoaderName) return {};
  return executable.parent_path().parent_path();
}

// Where its fellow programs lie.
inline std::filesystem::path programs_beside(const std::filesystem::path& executable) {
  const std::filesystem::path bundle = bundle_of(executable);
  return bundle.empty() ? executable.parent_path() : bundle / "bin";
}

// DPDK's drivers that came with the bundle; empty: EAL knows where its own are.
inline std::filesystem::path bundled_drivers(const std::filesystem::path& executable) {
  const std::filesystem::path bundle = bundle_of(executable);
  return bundle.empty() ? bundle : bundle / "lib/dpdk";
}

}  // namespace sluice::base
