// Options of a transfer (dataplane/base/options) in fields of messages: those of the API's TransferOptions,
// and those of the journal. A field has the option's name. An enumeration is its word in a text, and its
// number in a number.
//
// Pure. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <optional>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"
#include "dataplane/base/options/options.h"

namespace sluice::api {

// The field of this option; nullptr: the message has none.
const google::protobuf::FieldDescriptor* option_field(const options::Option& option,
                                                      const google::protobuf::Message& message);

// What the field says; nothing: it says nothing. kUsage: what the option cannot be.
Result<std::optional<int64_t>> option_in(const options::Option& option,
                                         const google::protobuf::Message& message,
                                         const google::protobuf::FieldDescriptor& field);
void set_option(const options::Option& option, int64_t number, google::protobuf::Message* message,
                const google::protobuf::FieldDescriptor& field);

// What a caller asks for. kUsage: what an option cannot be. Ranges are looked at by options::fill_in.
Result<options::Wish> wish_of(const TransferOptions& message);
void put_wish(const options::Wish& wish, TransferOptions* to);

}  // namespace sluice::api
