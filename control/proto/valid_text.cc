// SPDX-License-Identifier: Apache-2.0
#include "control/proto/valid_text.h"

#include <vector>

#include "dataplane/base/text.h"

namespace sluice::api {

void make_texts_valid(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& of = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  of.ListFields(*message, &fields);
  std::string copy;
  for (const FieldDescriptor* const field : fields) {
    const bool text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!text && field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? of.FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (!text) {
        make_texts_valid(field->is_repeated() ? of.MutableRepeatedMessage(message, field, i)
                                              : of.MutableMessage(message, field));
        continue;
      }
      const std::string& value = field->is_repeated()
                                     ? of.GetRepeatedStringReference(*message, field, i, &copy)
                                     : of.GetStringReference(*message, field, &copy);
      if (base::is_utf8(value)) continue;
      std::string valid = base::printable(value);
      if (field->is_repeated()) {
        of.SetRepeatedString(message, field, i, std::move(valid));
      } else {
        of.SetString(message, field, std::move(valid));
      }
    }
  }
}

}  // namespace sluice::api
