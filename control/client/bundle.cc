// SPDX-License-Identifier: Apache-2.0
#include "control/client/bundle.h"

namespace sluice::api {

std::optional<Failure> export_bundle(Control::Stub& stub, const ExportRequest& request, std::string* bundle) {
  Call call(stub, std::nullopt);
  return call.read(stub.ExportSession(call.context(), request), [bundle](const BundlePart& part) {
    *bundle += part.bytes();
    return true;
  });
}

std::optional<Failure> import_bundle(Control::Stub& stub, const std::string& bundle, Session* session) {
  constexpr size_t kPartBytes = 1 << 20;
  Call call(stub, std::nullopt);
  const auto writer = stub.ImportSession(call.context(), session);
  bool open = true;
  for (size_t at = 0; open && at < bundle.size(); at += kPartBytes) {
    BundlePart part;
    part.set_bytes(bundle.substr(at, kPartBytes));
    open = writer->Write(part);
  }
  writer->WritesDone();
  return call.end(writer->Finish());
}

}  // namespace sluice::api
