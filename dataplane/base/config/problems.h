// What is wrong with a value of node.toml whose type and range are right: a clause such as "must be a power
// of two", empty when nothing is. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::config {

std::string_view name_problem(std::string_view text);
std::string_view listen_problem(std::string_view text);
std::string_view address4_problem(std::string_view text);
std::string_view address6_problem(std::string_view text);
std::string_view gateway4_problem(std::string_view text);
std::string_view gateway6_problem(std::string_view text);
std::string_view neighbours_problem(std::string_view text);
std::string_view device_problem(std::string_view text);
std::string_view path_problem(std::string_view text);
std::string_view optional_path_problem(std::string_view text);
std::string_view domain_problem(std::string_view text);
std::string_view group_problem(std::string_view text);
std::string_view user_problem(std::string_view text);
std::string_view umask_problem(std::string_view text);
std::string_view power_of_two_problem(uint64_t value);
std::string_view extents_problem(uint64_t value);

}  // namespace sluice::config
