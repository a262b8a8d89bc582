// Abilities in messages of the peer and of the journal: each is a `bool` of its name
// (control/words/abilities.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "control/words/abilities.h"
#include "dataplane/base/check.h"

namespace sluice::peer {

inline const google::protobuf::FieldDescriptor& ability_field(transfer::Ability ability,
                                                              const google::protobuf::Message& message) {
  const std::string name(transfer::kAbilityNames[static_cast<size_t>(ability)]);
  const auto* const field = message.GetDescriptor()->FindFieldByName(name);
  CHECK(field != nullptr && field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL,
        "a message that tells abilities has a bool for each");
  return *field;
}

inline void set_abilities(const transfer::AbilitySet& abilities, google::protobuf::Message* message) {
  for (size_t i = 0; i < transfer::kAbilityNames.size(); ++i) {
    const auto ability = static_cast<transfer::Ability>(i);
    message->GetReflection()->SetBool(message, &ability_field(ability, *message), abilities.has(ability));
  }
}

inline transfer::AbilitySet abilities_in(const google::protobuf::Message& message) {
  transfer::AbilitySet abilities;
  for (size_t i = 0; i < transfer::kAbilityNames.size(); ++i) {
    const auto ability = static_cast<transfer::Ability>(i);
    abilities.set(ability, message.GetReflection()->GetBool(message, &ability_field(ability, message)));
  }
  return abilities;
}

}  // namespace sluice::peer
