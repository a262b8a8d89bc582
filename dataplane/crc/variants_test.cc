// Each way to sum and copy that this CPU can run, against the definition.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/variants.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dataplane/crc/crc.h"
#include "dataplane/crc/distance.h"
#include "dataplane/crc/field.h"

namespace sluice::crc {
namespace {

using Copying = uint64_t (*)(CrcKind, uint64_t, const void*, void*, size_t);

constexpr uint8_t kUntouched = 0xEE;
// Beyond every length at which a loop begins, or runs once more: 256 bytes, and strides of 256.
constexpr size_t kEveryLengthMax = 1200;
// Before and behind a page that may be used, one that may not: who reads or writes past an end, dies.
class FencedBytes {
 public:
  explicit FencedBytes(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inner_ = (bytes + page - 1) / page * page;
    mapped_ = inner_ + 2 * page;
    map_ = static_cast<uint8_t*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    first_ = map_ + page;
    EXPECT_EQ(mprotect(first_, inner_, PROT_READ | PROT_WRITE), 0);
  }
  ~FencedBytes() { munmap(map_, mapped_); }
  FencedBytes(const FencedBytes&) = delete;
  FencedBytes& operator=(const FencedBytes&) = delete;

  uint8_t* at_begin() { return first_; }
  uint8_t* at_end() { return first_ + inner_ - bytes_; }  // the last of so many bytes touches the fence

 private:
  size_t bytes_;
  size_t inner_ = 0;
  size_t mapped_ = 0;
  uint8_t* map_ = nullptr;
  uint8_t* first_ = nullptr;
};

void fill(uint8_t* at, size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  for (size_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(random());
}

std::vector<uint8_t> filled(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> data(bytes);
  fill(data.data(), bytes, seed);
  return data;
}

struct Case {
  const Variant* variant;
  CrcKind kind;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Variant& variant : kVariants) {
    for (const CrcKind kind : {CrcKind::kCrc32c, CrcKind::kCrc64Ecma}) all.push_back({&variant, kind});
  }
  return all;
}

class EveryVariant : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!variant_.runs_on(flags_of_this_cpu())) GTEST_SKIP() << "this CPU cannot run " << variant_.name;
  }

  // A seed of this kind: what a CRC can be.
  uint64_t seed(uint64_t number) const {
    const uint64_t any = (number + 1) * 0x9E3779B97F4A7C15;
    return kind_ == CrcKind::kCrc32c ? any >> 32 : any;
  }

  // Copies `bytes` to `skew` bytes behind a line of cache, and looks at all that lies around.
  void expect_copied(Copying copying, const uint8_t* from, size_t skew, size_t bytes) {
    room_.assign(bytes + 4 * kLineBytes, kUntouched);
    const size_t line = -reinterpret_cast<uintptr_t>(room_.data()) % kLineBytes;
    const size_t at = line + kLineBytes + skew;
    const uint64_t crc = copying(kind_, seed(bytes), from, &room_[at], bytes);
    publish_copies();
    ASSERT_EQ(crc, reference(kind_, seed(bytes), from, bytes)) << bytes << " bytes, skew " << skew;
    ASSERT_TRUE(std::equal(from, from + bytes, &room_[at])) << bytes << " bytes, skew " << skew;
    const auto untouched = [](uint8_t byte) { return byte == kUntouched; };
    ASSERT_TRUE(std::all_of(room_.begin(), room_.begin() + static_cast<ptrdiff_t>(at), untouched))
        << "something before " << bytes << " bytes, skew " << skew;
    ASSERT_TRUE(std::all_of(room_.begin() + static_cast<ptrdiff_t>(at + bytes), room_.end(), untouched))
        << "something behind " << bytes << " bytes, skew " << skew;
  }

  const Variant& variant_ = *GetParam().variant;
  const CrcKind kind_ = GetParam().kind;
  std::vector<uint8_t> room_;
};
INSTANTIATE_TEST_SUITE_P(Crc, EveryVariant, testing::ValuesIn(cases()), [](const auto& test) {
  return std::string(test.param.variant->name) + "_" + std::string(wire::crc_kind_name(test.param.kind));
});

TEST_P(EveryVariant, SumsEveryLengthAtAnyAlignment) {
  const auto data = filled(kEveryLengthMax + kLineBytes, 1);
  for (size_t bytes = 0; bytes <= kEveryLengthMax; ++bytes) {
    const size_t at = bytes * 7 % kLineBytes;
    ASSERT_EQ(variant_.compute(kind_, seed(bytes), &data[at], bytes),
              reference(kind_, seed(bytes), &data[at], bytes))
        << bytes << " bytes at " << at;
  }
}

TEST_P(EveryVariant, CopiesEveryLengthToAnyAlignmentAndNothingElse) {
  const auto data = filled(kEveryLengthMax + kLineBytes, 2);
  for (const Copying copying : {variant_.copy, variant_.copy_past_caches}) {
    for (size_t bytes = 0; bytes <= kEveryLengthMax; ++bytes) {
      for (const size_t skew : {size_t{0}, bytes * 5 % kLineBytes}) {
        ASSERT_NO_FATAL_FAILURE(expect_copied(copying, &data[bytes * 7 % kLineBytes], skew, bytes));
      }
    }
    for (size_t skew = 0; skew < kLineBytes; ++skew) {
      for (const size_t bytes : {size_t{255}, size_t{256}, size_t{257}, size_t{511}, size_t{1150}}) {
        ASSERT_NO_FATAL_FAILURE(expect_copied(copying, data.data(), skew, bytes));
      }
    }
  }
}

TEST_P(EveryVariant, AgreesOnLargeSizes) {
  std::mt19937 random(3);
  const auto data = filled(300'000, 4);
  for (int i = 0; i < 20; ++i) {
    const size_t at = random() % 100;
    const size_t bytes = random() % (data.size() - at);
    ASSERT_EQ(variant_.compute(kind_, seed(at), &data[at], bytes),
              reference(kind_, seed(at), &data[at], bytes))
        << bytes << " bytes at " << at;
    for (const Copying copying : {variant_.copy, variant_.copy_past_caches}) {
      ASSERT_NO_FATAL_FAILURE(expect_copied(copying, &data[at], random() % kLineBytes, bytes));
    }
  }
}

TEST_P(EveryVariant, ReadsAndWritesOnlyWhatItWasGiven) {
  for (size_t bytes = 1; bytes <= kEveryLengthMax; bytes += bytes < 320 ? 1 : 61) {
    FencedBytes from(bytes);
    FencedBytes to(bytes);
    fill(from.at_begin(), bytes, 5);
    fill(from.at_end(), bytes, 5);
    const uint64_t expected = reference(kind_, 0, from.at_end(), bytes);
    for (uint8_t* const source : {from.at_begin(), from.at_end()}) {
      ASSERT_EQ(variant_.compute(kind_, 0, source, bytes), reference(kind_, 0, source, bytes));
    }
    for (const Copying copying : {variant_.copy, variant_.copy_past_caches}) {
      ASSERT_EQ(copying(kind_, 0, from.at_end(), to.at_begin(), bytes), expected) << bytes;
      ASSERT_EQ(copying(kind_, 0, from.at_end(), to.at_end(), bytes), expected) << bytes;
    }
  }
}

TEST_P(EveryVariant, Multiplies) {
  const Field field = field_of(kind_);
  const uint64_t all = field.width == 64 ? UINT64_MAX : UINT32_MAX;
  std::vector<uint64_t> values{0, 1, all, uint64_t{1} << (field.width - 1)};  // the last is 1
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) values.push_back(random() & all);
  for (const uint64_t a : values) {
    for (const uint64_t b : values)
      ASSERT_EQ(variant_.multiply(kind_, a, b), multiply(field, a, b)) << std::hex << a << " " << b;
    const uint64_t beyond = a | ~all;  // what a peer writes may be longer than a CRC-32C
    ASSERT_EQ(variant_.multiply(kind_, beyond, values[3]), multiply(field, beyond, values[3]));
  }
}

TEST_P(EveryVariant, SumsHeaders) {
  for (uint32_t i = 0; i < 200; ++i) {
    const auto data = filled(wire::kHeaderCoveredBytes + i % 16, i);
    const uint8_t* const header = &data[i % 16];
    ASSERT_EQ(variant_.compute_header(kind_, seed(i), header),
              reference(kind_, seed(i), header, wire::kHeaderCoveredBytes));
  }
}

// Of a CRC each bit of the data counts by itself: one bit alone finds a constant that is wrong in one place.
TEST_P(EveryVariant, KnowsEveryBitOfAHeader) {
  uint8_t header[wire::kHeaderCoveredBytes] = {};
  for (size_t bit = 0; bit < 8 * sizeof header; ++bit) {
    header[bit / 8] = static_cast<uint8_t>(1U << (bit % 8));
    ASSERT_EQ(variant_.compute_header(kind_, 0, header), reference(kind_, 0, header, sizeof header)) << bit;
    header[bit / 8] = 0;
  }
}

// ---- which one ---------------------------------------------------------------------------------

constexpr CpuFlags kEverything{.pclmulqdq = true,
                               .avx2 = true,
                               .vpclmulqdq = true,
                               .avx512f = true,
                               .avx512bw = true,
                               .avx512vbmi = true};

std::string_view name_for(CpuFlags flags) { return variant_for(flags).name; }

TEST(Choice, TheWidestThatACpuHas) {
  EXPECT_EQ(name_for(kEverything), "avx512");
  CpuFlags cpu = kEverything;
  cpu.avx512vbmi = false;  // an emulator or hypervisor that shows some of them
  EXPECT_EQ(name_for(cpu), "avx2");
  cpu.avx512bw = false;
  EXPECT_EQ(name_for(cpu), "avx2");
  cpu.avx512f = false;  // Zen 3, Alder Lake
  EXPECT_EQ(name_for(cpu), "avx2");
  cpu.vpclmulqdq = false;  // Haswell to Zen 2
  EXPECT_EQ(name_for(cpu), "pclmul");
  cpu.avx2 = false;  // Westmere
  EXPECT_EQ(name_for(cpu), "pclmul");
  cpu.pclmulqdq = false;  // Nehalem
  EXPECT_EQ(name_for(cpu), "plain");
}

TEST(Choice, WideRegistersAloneDoNotMultiply) {
  CpuFlags cpu = kEverything;
  cpu.vpclmulqdq = false;  // Skylake-X
  EXPECT_EQ(name_for(cpu), "pclmul");
  cpu = kEverything;
  cpu.avx2 = cpu.avx512f = false;  // a kernel that keeps none of them
  EXPECT_EQ(name_for(cpu), "pclmul");
  cpu = kEverything;
  cpu.pclmulqdq = false;  // some emulators
  EXPECT_EQ(name_for(cpu), "plain");
}

TEST(Choice, TheProgramUsesWhatItsCpuGets) { EXPECT_EQ(variant(), variant_for(flags_of_this_cpu()).name); }

TEST(Choice, NamesFitTheBoard) {
  for (const Variant& each : kVariants) {
    EXPECT_LT(each.name.size(), 16U);
    EXPECT_TRUE(std::all_of(each.name.begin(), each.name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    })) << each.name;
  }
}

// ---- constants ---------------------------------------------------------------------------------

// What the paper's method wants, said once more by the definition: a remainder is what a CRC of zeros leaves.
TEST(Constants, ADistanceIsWhatZerosDo) {
  const std::vector<uint8_t> zeros(512);
  for (const uint64_t bytes : {8U, 16U, 64U, 256U, 504U}) {
    // A state of x^0 (the top bit) over so many zeros, less the last of the bits.
    const uint64_t one_more = multiply(kEcma, Folding<CrcKind::kCrc64Ecma>::power(bytes), 1ULL << 62);
    EXPECT_EQ(one_more, ~reference(CrcKind::kCrc64Ecma, ~(1ULL << 63), zeros.data(), bytes)) << bytes;
  }
}

}  // namespace
}  // namespace sluice::crc
