// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/host_figures.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace sluice::exporter {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr seconds kRoundEvery{10};
constexpr seconds kForgotten{60};

// Fields of /proc/self/stat behind the name, which may hold anything: proc(5) numbers them from 3.
std::vector<uint64_t> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > text.size()) return {};
  std::istringstream rest(text.substr(name_end + 4));  // behind the state, field 3
  std::vector<uint64_t> fields(4);
  for (int64_t value = 0; rest >> value;) fields.push_back(static_cast<uint64_t>(value));
  return fields;
}

double boot_time_s() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double value = 0;
    if (word == "btime" && file >> value) return value;
  }
  return 0;
}

}  // namespace

metrics::ProcessFigures process_figures() {
  constexpr size_t kUserTime = 14, kSystemTime = 15, kStartTime = 22, kResident = 24;
  metrics::ProcessFigures figures;
  const std::vector<uint64_t> fields = stat_fields();
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (fields.size() > kResident && ticks > 0) {
    figures.cpu_s = static_cast<double>(fields[kUserTime] + fields[kSystemTime]) / ticks;
    figures.start_time_s = boot_time_s() + static_cast<double>(fields[kStartTime]) / ticks;
    figures.resident_bytes = fields[kResident] * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) figures.max_fds = limit.rlim_cur;
  std::error_code error;
  const std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (!error) figures.open_fds = static_cast<uint64_t>(std::distance(begin(open), end(open)));
  return figures;
}

// ---- file systems ------------------------------------------------------------------------------

struct ExportSpaces::State {
  struct Heard {
    metrics::ExportSpace space;
    steady_clock::time_point at;
  };
  std::vector<config::Export> exports;
  std::mutex mutex;
  std::condition_variable answered;
  std::map<std::string, Heard> heard;
  std::set<std::string> asked;  // that have not answered yet
  steady_clock::time_point round_began = steady_clock::time_point::min();

  void ask(const config::Export& each) {  // on a thread of its own
    struct statvfs info {};
    const bool told = ::statvfs(each.path.c_str(), &info) == 0;
    const std::lock_guard lock(mutex);
    if (told)
      heard[each.name] = {.space = {.name = each.name,
                                    .size_bytes = uint64_t{info.f_blocks} * info.f_frsize,
                                    .free_bytes = uint64_t{info.f_bavail} * info.f_frsize},
                          .at = steady_clock::now()};
    asked.erase(each.name);
    answered.notify_all();
  }
};

ExportSpaces::ExportSpaces(const std::vector<config::Export>& exports) : state_(std::make_shared<State>()) {
  state_->exports = exports;
  (void)newest();
}

std::vector<metrics::ExportSpace> ExportSpaces::newest() {
  const auto now = steady_clock::now();
  const std::lock_guard lock(state_->mutex);
  const bool due =
      state_->round_began == steady_clock::time_point::min() || now - state_->round_began > kRoundEvery;
  if (due) state_->round_began = now;
  for (const config::Export& each : state_->exports) {
    if (!due || !state_->asked.insert(each.name).second) continue;
    try {
      std::thread([state = state_, each] { state->ask(each); }).detach();
    } catch (const std::system_error&) {  // no thread to be had: another scrape tries again
      state_->asked.erase(each.name);
    }
  }
  std::vector<metrics::ExportSpace> spaces;
  for (const auto& [name, heard] : state_->heard) {
    if (now - heard.at < kForgotten) spaces.push_back(heard.space);
  }
  return spaces;
}

void ExportSpaces::wait() {
  std::unique_lock lock(state_->mutex);
  state_->answered.wait(lock, [this] { return state_->asked.empty(); });
}

}  // namespace sluice::exporter
