// copy NODE SOURCE... DESTINATION: of which one side is PEER:PATH, as with `sluice send` and `sluice get`.
//
// It prints a line for each change, then each file with its digest, and exits as `sluice` does
// (docs/RUNBOOK.md).
// SPDX-License-Identifier: Apache-2.0
#include <sluice/client.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using sluice::client::Node;
using sluice::client::Options;
using sluice::client::Session;
using sluice::client::Status;

void print(const Status& now) {
  std::printf("%s %llu of %llu bytes, held by %s\n", name_of(now.state),
              static_cast<unsigned long long>(now.bytes_done),
              static_cast<unsigned long long>(now.bytes_total), now.bottleneck.c_str());
}

// "beta:data/": the peer before the colon, which is removed.
std::string take_peer(std::string& path) {
  const size_t colon = path.find(':');
  const std::string peer = path.substr(0, colon);
  if (colon == std::string::npos || peer.find('/') != std::string::npos || peer == "memory") return "";
  path.erase(0, colon + 1);
  return peer;
}

Session begin(const Node& node, std::vector<std::string> sources, std::string destination) {
  Options options;
  options.mkdir = true;
  const std::string to = take_peer(destination);
  if (!to.empty()) return node.send(sources, to, destination, options);
  std::string from;
  for (std::string& source : sources) from = take_peer(source);
  return node.get(from, sources, destination, options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: copy NODE SOURCE... DESTINATION\n");
    return 2;
  }
  try {
    const Node node(argv[1]);
    const Session session = begin(node, {argv + 2, argv + argc - 1}, argv[argc - 1]);
    std::printf("session %s\n", session.id().c_str());
    const Status end = session.wait(print);
    for (const sluice::client::File& file : end.files)
      std::printf("%s %s\n", file.digest_destination.c_str(), file.destination.c_str());
  } catch (const sluice::client::Error& error) {
    std::fprintf(stderr, "copy: %s (%s)\n", error.what(), error.name().c_str());
    return error.code();
  }
  return 0;
}
