// Cold. See clock.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/clock.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace sluice::lane {
namespace {

// Those that the kernel itself derives from the TSC.
constexpr std::array<std::string_view, 4> kFromTsc{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen"};

// It runs at one rate, whatever the CPU's frequency and sleep states.
bool tsc_is_invariant() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
}

}  // namespace

std::string kernel_clock_source() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  file >> name;
  return name;
}

bool tsc_is_usable(std::string_view clock_source) {
  return clock_source.empty() ? tsc_is_invariant()
                              : std::ranges::find(kFromTsc, clock_source) != kFromTsc.end();
}

}  // namespace sluice::lane
