// Which engine of AES-GCM is the quickest on this CPU, measured once, when the process asks first.
//
// The engines take turns on a chunk in the cache, a few calls a turn, and the best turn of each counts: an
// interruption makes a turn slower and never quicker. libipsec-mb is the one to beat, by a tenth, so that two
// that are alike do not change from start to start. OpenSSL keeps keys in memory of its own, and is taken
// only where nothing else runs. The turns are counted, 0.2 ms on a CPU with VAES.
//
// Cold. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/seal/gcm.h"

namespace sluice::seal {

// To seal 8 KiB under AES-128-GCM; 0: this CPU cannot, or nothing was to be compared.
struct GcmTimes {
  uint64_t ipsec_mb_ns = 0;
  uint64_t vaes_ns = 0;
};

struct GcmChoice {
  GcmEngine engine = GcmEngine::kOpenSsl;
  GcmTimes times;
};
const GcmChoice& gcm_choice();

// The quickest engine that runs here. Pure.
GcmEngine quickest(bool ipsec_mb_runs, bool vaes_runs, const GcmTimes& times);

}  // namespace sluice::seal
