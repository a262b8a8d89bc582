// See settings.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "dataplane/base/config/config.h"

namespace sluice::emulator {
namespace {

constexpr double kWholeMax = 9007199254740992;  // 2^53: every integer up to here is a double
constexpr uint64_t kBytesMax = 1ULL << 40;
constexpr uint64_t kBitsPerSecondMax = 10'000'000'000'000;
constexpr size_t kPacketsMax = 100'000;

Error wrong(const std::string& key, const std::string& reason) {
  return {ErrorCode::kConfiguration, fmt::format("{}: {}", key, reason)};
}

// The one list of keys, for reading and for writing.
template <typename Visitor>
void visit(Visitor& v, Settings& s) {
  v.section("rate", [&] {
    v.rate("bits_per_s", s.rate.bits_per_s);
    v.whole("queue_bytes", s.rate.queue_bytes, 0, kBytesMax);
    v.whole("overhead_bytes", s.rate.overhead_bytes, 0, 65535);
  });
  v.section("loss", [&] {
    v.real("probability", s.loss.probability, 1);
    v.section("burst", [&] {
      v.real("p", s.loss.burst.p, 1);
      v.real("r", s.loss.burst.r, 1);
      v.real("loss_bad", s.loss.burst.loss_bad, 1);
      v.real("loss_good", s.loss.burst.loss_good, 1);
    });
    v.real("length_l0_bytes", s.loss.length_l0_bytes, 1e12);
    v.whole("every_nth", s.loss.every_nth, 0, std::numeric_limits<uint32_t>::max());
    v.numbers("packets", s.loss.packets);
  });
  v.section("corrupt", [&] {
    v.real("bits", s.corrupt.bits, 1);
    v.real("bits_repaired", s.corrupt.bits_repaired, 1);
    v.real("swap_words", s.corrupt.swap_words, 1);
    v.real("truncate", s.corrupt.truncate, 1);
    v.real("forge", s.corrupt.forge, 1);
    v.whole("bits_count", s.corrupt.bits_count, 1, 1000);
  });
  v.section("duplicate", [&] {
    v.real("probability", s.duplicate.probability, 1);
    v.real("delay_us", s.duplicate.delay_us, kDelayUsMax);
  });
  v.section("delay", [&] {
    v.real("fixed_us", s.delay.fixed_us, kDelayUsMax);
    v.real("exponential_us", s.delay.exponential_us, kDelayUsMax);
    v.real("exponential_us_per_byte", s.delay.exponential_us_per_byte, kDelayUsMax);
    v.real("exponential_us_over_ln", s.delay.exponential_us_over_ln, kDelayUsMax);
    v.real("uniform_us", s.delay.uniform_us, kDelayUsMax);
    v.real("normal_us", s.delay.normal_us, kDelayUsMax);
    v.flag("keep_order", s.delay.keep_order);
  });
  v.section("reorder", [&] {
    v.real("probability", s.reorder.probability, 1);
    v.whole("distance", s.reorder.distance, 1, kReorderDistanceMax);
    v.real("hold_us_max", s.reorder.hold_us_max, kDelayUsMax);
  });
  v.length_of("length_of", s.length_of);
}

class Writer {
 public:
  Json json = Json::object();

  template <typename Body>
  void section(const char* key, Body body) {
    Json outer = std::move(json);
    json = Json::object();
    body();
    outer[key] = std::move(json);
    json = std::move(outer);
  }
  void rate(const char* key, uint64_t value) { json[key] = value; }
  template <typename Whole>
  void whole(const char* key, Whole value, uint64_t, uint64_t) {
    json[key] = value;
  }
  void real(const char* key, double value, double) { json[key] = value; }
  void flag(const char* key, bool value) { json[key] = value; }
  void numbers(const char* key, const std::vector<uint64_t>& value) { json[key] = value; }
  void length_of(const char* key, LengthOf value) {
    json[key] = value == LengthOf::kFrame ? "frame" : "udp_payload";
  }
};

// Keys that are not there keep what the struct has. The first error stays.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(&json) {}
  Status status;

  template <typename Body>
  void section(const char* key, Body body) {
    const Json* const inner = find(key);
    if (inner == nullptr) return;
    if (!inner->is_object()) return fail(key, "expected an object");
    const Json* const outer = std::exchange(json_, inner);
    const std::string before = prefix_;
    prefix_ += std::string(key) + ".";
    body();
    prefix_ = before;
    json_ = outer;
  }
  void rate(const char* key, uint64_t& value) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return whole(key, value, 0, kBitsPerSecondMax);
    const auto parsed = config::parse_rate(found->get_ref<const std::string&>());
    if (!parsed) return fail(key, parsed.error().message);
    if (*parsed > kBitsPerSecondMax) return fail(key, "is above 10T");
    value = *parsed;
  }
  template <typename Whole>
  void whole(const char* key, Whole& value, uint64_t least, uint64_t most) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    uint64_t number = 0;
    if (!is_whole(*found, &number) || number < least || number > most) {
      return fail(key, fmt::format("expected a whole number from {} to {}", least, most));
    }
    value = static_cast<Whole>(number);
  }
  void real(const char* key, double& value, double most) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    const double number = found->is_number() ? found->get<double>() : -1;
    if (!(number >= 0 && number <= most)) {
      return fail(key, fmt::format("expected a number from 0 to {}", most));
    }
    value = number;
  }
  void flag(const char* key, bool& value) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return fail(key, "expected true or false");
    value = found->get<bool>();
  }
  void numbers(const char* key, std::vector<uint64_t>& value) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    value.clear();
    bool good = found->is_array() && found->size() <= kPacketsMax;
    for (size_t i = 0; good && i < found->size(); ++i) {
      value.push_back(0);
      good = is_whole((*found)[i], &value.back()) && value.back() > 0;
    }
    if (!good) fail(key, fmt::format("expected a list of at most {} frame numbers, from 1", kPacketsMax));
  }
  void length_of(const char* key, LengthOf& value) {
    const Json* const found = find(key);
    if (found == nullptr) return;
    if (*found == "frame") {
      value = LengthOf::kFrame;
    } else if (*found == "udp_payload") {
      value = LengthOf::kUdpPayload;
    } else {
      fail(key, "expected \"udp_payload\" or \"frame\"");
    }
  }

 private:
  const Json* find(const char* key) const {
    const auto found = json_->find(key);
    return found == json_->end() ? nullptr : &*found;
  }
  static bool is_whole(const Json& json, uint64_t* value) {
    if (json.is_number_unsigned()) {
      *value = json.get<uint64_t>();
      return true;
    }
    // 1e6 is a whole number to whoever writes it.
    const double number = json.is_number_float() ? json.get<double>() : -1;
    if (!(number >= 0 && number <= kWholeMax) || std::floor(number) != number) return false;
    *value = static_cast<uint64_t>(number);
    return true;
  }
  void fail(const char* key, const std::string& reason) {
    if (status) status = wrong(prefix_ + key, reason);
  }

  const Json* json_;
  std::string prefix_;
};

// `known` has every key that there is, until a null takes one out.
Status merge(Json* known, const Json& changes, const std::string& prefix) {
  if (!changes.is_object()) {
    return wrong(prefix.empty() ? "settings" : prefix.substr(0, prefix.size() - 1), "expected an object");
  }
  for (const auto& [key, value] : changes.items()) {
    const auto found = known->find(key);
    if (found == known->end()) return wrong(prefix + key, "is no setting: see docs/WIRE-EMULATOR.md");
    if (value.is_null()) {
      known->erase(found);
    } else if (found->is_object()) {
      if (Status status = merge(&*found, value, prefix + key + "."); !status) return status;
    } else {
      *found = value;
    }
  }
  return {};
}

}  // namespace

Json to_json(const Settings& settings) {
  Writer writer;
  Settings copy = settings;
  visit(writer, copy);
  return std::move(writer.json);
}

Result<Settings> changed(const Settings& base, const Json& changes) {
  Json merged = to_json(base);
  if (Status status = merge(&merged, changes, ""); !status) return status.error();
  Settings settings;
  Reader reader(merged);
  visit(reader, settings);
  if (!reader.status) return reader.status.error();
  const BurstSettings& burst = settings.loss.burst;
  if (burst.p > 0 && burst.r == 0) {
    return wrong("loss.burst.r", "is 0, so that a burst never ends: set it to 1 / (frames of a mean burst)");
  }
  return settings;
}

}  // namespace sluice::emulator
