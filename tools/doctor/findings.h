// How a check says what it found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/checks.h"

namespace sluice::doctor {

// Of a disk, free: less is worth a warning.
inline constexpr double kLittleSpace = 0.05;

inline void pass(std::vector<Finding>& out, std::string check, std::string text) {
  out.push_back({.check = std::move(check), .level = Level::kPass, .text = std::move(text), .remedy = {}});
}
inline void warn(std::vector<Finding>& out, std::string check, std::string text, std::string remedy) {
  out.push_back({std::move(check), Level::kWarn, std::move(text), std::move(remedy)});
}
inline void fail(std::vector<Finding>& out, std::string check, std::string text, std::string remedy) {
  out.push_back({std::move(check), Level::kFail, std::move(text), std::move(remedy)});
}

// Nobody but the node's owner and root may see or do all that a node does: that this user may not tells
// nothing of it.
bool hidden(const Facts& facts, const std::string& problem);
// "sudo -u OWNER sluice doctor ...".
std::string as_owner(const Facts& facts);
// "you may not see it as USER".
std::string unseen(const Facts& facts);

// " (distance 21)", as the kernel measures how far memory of one NUMA node is from another; empty: it does
// not say.
std::string distance_text(const Facts& facts, int from, int to);

}  // namespace sluice::doctor
