// Texts of messages to operators that may hold what a peer wrote, such as the name of a file.
//
// Pure. A reader of protobuf refuses a message as a whole if one of its strings is not UTF-8, so one name
// would hide all sessions of a node. Whoever fills a string with words of others passes them through
// base::printable(); this looks once more, at all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

namespace sluice::api {

// Every field of type `string`, also those of messages within it, is valid UTF-8 afterwards.
void make_texts_valid(google::protobuf::Message* message);

}  // namespace sluice::api
