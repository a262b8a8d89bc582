// Any text as the device of a port: refused with one line, or a device whose argument names no other one.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/dpdk/device_args.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  fuzz::Input input(data, size);
  config::Node node;
  node.name = "fuzz";
  node.directory = "/node";
  node.mtu = 576 + input.take<uint16_t>() % 9000;
  node.device = input.text(size);
  const auto device = dpdk::parse_device(node);
  if (!device) {
    const std::string& why = device.error().message;
    fuzz::require(!why.empty() && why.find('\n') == std::string::npos, "one line says why");
    return 0;
  }
  fuzz::require(!device->name.empty() && device->argument.starts_with(device->name),
                "the argument is the device's");
  fuzz::require(node.device.starts_with(device->name), "which was named");
  return 0;
}
