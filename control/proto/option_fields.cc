// SPDX-License-Identifier: Apache-2.0
#include "control/proto/option_fields.h"

#include <cmath>

#include "dataplane/base/check.h"

namespace sluice::api {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using options::Option;

constexpr double kMillion = 1e6;

Error wrong(const Option& option, const std::string& value, const std::string& why) {
  return {ErrorCode::kUsage, std::string(option.name) + " = " + value + ": " + why};
}

// Proto3 does not tell 0 from nothing, where a field is not `optional`.
Result<std::optional<int64_t>> number(const Option& option, int64_t value, bool optional) {
  if (value == 0 && !optional) return std::optional<int64_t>();
  const bool is_word = !option.choices.empty() && option.kind == options::Kind::kChoice;
  if (is_word && (value < 0 || static_cast<size_t>(value) >= option.choices.size()))
    return wrong(option, std::to_string(value), option.remedy());
  return std::optional(value);
}

Result<std::optional<int64_t>> fraction(const Option& option, double value) {
  if (!(value >= 0 && value <= 1))
    return wrong(option, std::to_string(value), "a fraction of 0 to " + std::to_string(option.most / 100));
  return std::optional<int64_t>(std::llround(value * kMillion));
}

Result<std::optional<int64_t>> word(const Option& option, const std::string& text) {
  if (text.empty()) return std::optional<int64_t>();
  const Result<int64_t> found = option.of_word(text, option.name);
  if (!found) return found.error();
  return std::optional(*found);
}

}  // namespace

const FieldDescriptor* option_field(const Option& option, const Message& message) {
  return message.GetDescriptor()->FindFieldByName(std::string(option.name));
}

Result<std::optional<int64_t>> option_in(const Option& option, const Message& message,
                                         const FieldDescriptor& field) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  const bool optional = field.has_presence();
  if (optional && !of.HasField(message, &field)) return std::optional<int64_t>();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return number(option, of.GetBool(message, &field) ? 1 : 0, optional);
    case FieldDescriptor::CPPTYPE_UINT32:
      return number(option, of.GetUInt32(message, &field), optional);
    case FieldDescriptor::CPPTYPE_UINT64:
      return number(option, static_cast<int64_t>(of.GetUInt64(message, &field)), optional);
    case FieldDescriptor::CPPTYPE_INT32:
      return number(option, of.GetInt32(message, &field), optional);
    case FieldDescriptor::CPPTYPE_INT64:
      return number(option, of.GetInt64(message, &field), optional);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fraction(option, of.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_STRING:
      return word(option, of.GetString(message, &field));
    default:
      CHECK(false, "an option has a field of a type that options have (options_test.cc)");
  }
  return std::optional<int64_t>();
}

void set_option(const Option& option, int64_t number, Message* message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& of = *message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return of.SetBool(message, &field, number != 0);
    case FieldDescriptor::CPPTYPE_UINT32:
      return of.SetUInt32(message, &field, static_cast<uint32_t>(number));
    case FieldDescriptor::CPPTYPE_UINT64:
      return of.SetUInt64(message, &field, static_cast<uint64_t>(number));
    case FieldDescriptor::CPPTYPE_INT32:
      return of.SetInt32(message, &field, static_cast<int32_t>(number));
    case FieldDescriptor::CPPTYPE_INT64:
      return of.SetInt64(message, &field, number);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return of.SetDouble(message, &field, static_cast<double>(number) / kMillion);
    case FieldDescriptor::CPPTYPE_STRING:
      return of.SetString(message, &field, std::string(option.choices[static_cast<size_t>(number)]));
    default:
      CHECK(false, "an option has a field of a type that options have (options_test.cc)");
  }
}

Result<options::Wish> wish_of(const TransferOptions& message) {
  options::Wish wish;
  for (const Option& option : options::all()) {
    if (option.of != options::Of::kTransfer) continue;
    const FieldDescriptor* const field = option_field(option, message);
    CHECK(field != nullptr, "each option has its field in the API (options_test.cc)");
    const Result<std::optional<int64_t>> number = option_in(option, message, *field);
    if (!number) return number.error();
    if (*number) option.set_wish(wish, **number);
  }
  return wish;
}

void put_wish(const options::Wish& wish, TransferOptions* to) {
  for (const Option& option : options::all()) {
    if (option.of != options::Of::kTransfer) continue;
    const std::optional<int64_t> number = option.wish_in(wish);
    if (number) set_option(option, *number, to, *option_field(option, *to));
  }
}

}  // namespace sluice::api
