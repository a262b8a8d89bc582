// What control knows, in the terms of api.proto, and back. The only place where the two meet.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/node/options.h"
#include "control/proto/api.pb.h"
#include "control/transfer/view.h"

namespace sluice::service {

api::Session to_api(const transfer::View& view);
void put_values(const digests::Values& values, google::protobuf::RepeatedPtrField<api::Digest>* to);
// kUsage: an option that cannot be what it is said to be.
Result<node::Wishes> wishes_of(const api::SendRequest& request);
Result<node::Wishes> wishes_of(const api::GetRequest& request);

}  // namespace sluice::service
