// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/variants.h"

namespace sluice::crc {

constinit const Variant kVariants[] = {
    {.name = "avx512",
     .runs_on =
         [](const CpuFlags& cpu) {
           return cpu.pclmulqdq && cpu.vpclmulqdq && cpu.avx512f && cpu.avx512bw && cpu.avx512vbmi;
         },
     .compute = sum_avx512,
     .copy = copy_avx512,
     .copy_past_caches = stream_avx512,
     .compute_header = header_by_words,
     .multiply = multiply_by_words},
    {.name = "avx2",
     .runs_on = [](const CpuFlags& cpu) { return cpu.pclmulqdq && cpu.vpclmulqdq && cpu.avx2; },
     .compute = sum_avx2,
     .copy = copy_avx2,
     .copy_past_caches = stream_avx2,
     .compute_header = header_by_words,
     .multiply = multiply_by_words},
    {.name = "pclmul",  // the library folds by 128 bits on such a CPU
     .runs_on = [](const CpuFlags& cpu) { return cpu.pclmulqdq; },
     .compute = sum_by_library,
     .copy = copy_by_library,
     .copy_past_caches = stream_by_library,
     .compute_header = header_by_words,
     .multiply = multiply_by_words},
    {.name = "plain",  // and does what it can on any other
     .runs_on = [](const CpuFlags&) { return true; },
     .compute = sum_by_library,
     .copy = copy_by_library,
     .copy_past_caches = stream_by_library,
     .compute_header = header_by_library,
     .multiply = multiply_by_bits},
};

CpuFlags flags_of_this_cpu() {
  __builtin_cpu_init();  // this runs before main()
  return {.pclmulqdq = __builtin_cpu_supports("pclmul") != 0,
          .avx2 = __builtin_cpu_supports("avx2") != 0,
          .vpclmulqdq = __builtin_cpu_supports("vpclmulqdq") != 0,
          .avx512f = __builtin_cpu_supports("avx512f") != 0,
          .avx512bw = __builtin_cpu_supports("avx512bw") != 0,
          .avx512vbmi = __builtin_cpu_supports("avx512vbmi") != 0};
}

const Variant& variant_for(const CpuFlags& flags) {
  const Variant* best = kVariants;
  while (!best->runs_on(flags)) ++best;  // the last runs on any
  return *best;
}

}  // namespace sluice::crc
