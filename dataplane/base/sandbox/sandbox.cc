// Cold. See sandbox.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/sandbox.h"

#include "dataplane/base/sandbox/filter.h"
#include "dataplane/base/sandbox/landlock.h"
#include "dataplane/base/sandbox/threads.h"

#if defined(__has_feature)
#define SLUICE_HAS(feature) __has_feature(feature)
#else
#define SLUICE_HAS(feature) 0
#endif

namespace sluice::sandbox {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || SLUICE_HAS(address_sanitizer) || \
    SLUICE_HAS(thread_sanitizer) || SLUICE_HAS(memory_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr uint64_t kCallsBit = 1 << 16;
constexpr uint64_t kRingsBit = 1 << 17;
constexpr int kNetVersion = 4;

}  // namespace

uint64_t State::bits() const {
  return static_cast<uint64_t>(off) | uint64_t{landlock} << 8 | (calls ? kCallsBit : 0) |
         (rings ? kRingsBit : 0);
}

State State::of_bits(uint64_t bits) {
  State state;
  const auto off = static_cast<uint8_t>(bits);
  state.off = off > static_cast<uint8_t>(Off::kSanitizer) ? Off::kNot : static_cast<Off>(off);
  state.landlock = static_cast<uint8_t>(bits >> 8);
  state.calls = (bits & kCallsBit) != 0;
  state.rings = (bits & kRingsBit) != 0;
  return state;
}

std::string State::text() const {
  if (off == Off::kAsked) return "off, as node.toml says";
  if (off == Off::kSanitizer) return "off in a build with a sanitizer";
  std::string has;
  std::string lacks;
  const auto part = [&](bool there, const char* what) {
    std::string& list = there ? has : lacks;
    list += (list.empty() ? "" : ", ") + std::string(what);
  };
  part(calls, "system calls");
  part(landlock > 0, "files");
  part(landlock >= kNetVersion, "TCP");
  if (lacks.empty()) return has;
  return (has.empty() ? "none" : has) + "; this kernel cannot limit: " + lacks;
}

Result<State> apply(const Profile& profile, bool wanted) {
  State state;
  if (kSanitized) state.off = Off::kSanitizer;
  if (!wanted) state.off = Off::kAsked;
  UniqueFd ruleset;
  if (state.off == Off::kNot) {
    const int version = landlock_version();
    auto made = make_ruleset(profile, version);
    if (!made) return made.error();
    ruleset = std::move(*made);
    if (ruleset) state.landlock = static_cast<uint8_t>(version);
  }
  if (Status given = give_up_in_every_thread(profile.capabilities, ruleset ? ruleset.get() : -1); !given)
    return given.error();
  if (state.off != Off::kNot) return state;
  const auto filtered = filter_calls(profile, state.landlock > 0);
  if (!filtered) return filtered.error();
  state.calls = *filtered;
  return state;
}

}  // namespace sluice::sandbox
