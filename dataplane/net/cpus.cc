// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/cpus.h"

#include <sched.h>

#include <thread>

namespace sluice::net {

// A thread may ask for all CPUs, and gets those that it can have.
std::vector<int> possible_cpus() {
  std::vector<int> cpus;
  std::thread([&cpus] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0 || sched_getaffinity(0, sizeof set, &set) != 0) return;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(static_cast<int>(cpu));
    }
  }).join();
  return cpus;
}

}  // namespace sluice::net
