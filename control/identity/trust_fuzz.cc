// Any certificates that a caller shows before this node knows who it is, by themselves or signed by the
// authority that the node follows: each is refused with one line, or named as only the authority may name it.
// The first byte says what is done to the first certificate; a second one may follow it.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "control/identity/authority_for_test.h"
#include "control/identity/trust.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using identity::Issued;

struct StackDeleter {
  void operator()(STACK_OF(X509) * p) const { sk_X509_free(p); }
};

// Who judges: a node with one pinned key and an authority.
struct World {
  World() {
    char name[] = "/tmp/sluice-trust-fuzz-XXXXXX";
    const std::filesystem::path root = ::mkdtemp(name);
    config::Node node;
    node.directory = root / "alpha";
    node.name = "alpha";
    node.ca_domain = "sluice.example";
    node.ca_file = root / "ca.pem";
    std::ofstream(node.ca_file) << ca.pem();
    ::chmod(node.ca_file.c_str(), 0644);
    fuzz::require(static_cast<bool>(identity::create(node.directory, "alpha")), "a node");
    fuzz::require(static_cast<bool>(identity::trust(node.directory, "beta", "", pinned.pem(), false)),
                  "a pin");
    auto loaded = identity::Trust::load(node);
    fuzz::require(loaded && loaded->problems().empty(), "whom it trusts");
    trust = std::move(*loaded);
    std::filesystem::remove_all(root);
  }
  const Issued ca = identity::make_authority("CA of the fuzzer");
  const Issued pinned = identity::issue({.common_name = "beta"});
  identity::Trust trust;
};

void sign(const World& world, X509* x, bool in_time) {
  X509_set_issuer_name(x, X509_get_subject_name(world.ca.certificate.get()));
  X509_set_pubkey(x, world.ca.key.get());  // one that is sure to be read
  if (in_time) {
    X509_gmtime_adj(X509_getm_notBefore(x), -86'400);
    X509_gmtime_adj(X509_getm_notAfter(x), 86'400);
  }
  X509_sign(x, world.ca.key.get(), nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const World world;
  if (size < 2) return 0;
  const uint8_t* at = data + 1;
  const uint8_t* const end = data + size;
  const identity::CertificatePointer first(d2i_X509(nullptr, &at, end - at));
  if (!first) return 0;
  const identity::CertificatePointer second(at < end ? d2i_X509(nullptr, &at, end - at) : nullptr);
  const bool by_authority = (data[0] & 1) != 0;
  if (by_authority) sign(world, first.get(), (data[0] & 2) != 0);
  const std::unique_ptr<STACK_OF(X509), StackDeleter> others(sk_X509_new_null());
  if (second) sk_X509_push(others.get(), second.get());
  const identity::Shown shown{
      .certificate = first.get(),
      .others = others.get(),
      .purpose = (data[0] & 4) != 0 ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER};
  fuzz::require(!world.trust.offer_in(shown), "no pinned key signed anything");
  const auto peer = world.trust.judge(shown, std::time(nullptr));
  if (!peer) {
    const std::string& why = peer.error().message;
    fuzz::require(!why.empty() && why.find('\n') == std::string::npos && why.size() < 4096,
                  "one line says why");
    return 0;
  }
  fuzz::require(by_authority, "nobody is trusted whom nobody signed");
  fuzz::require(config::valid_node_name(peer->name), "it is named as a node can be");
  fuzz::require(peer->name != "alpha" && peer->name != "beta", "and neither as this one nor as a pinned one");
  fuzz::require(static_cast<bool>(world.trust.check_still(*peer)), "and is still who it is");
  return 0;
}
