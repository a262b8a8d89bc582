// Keys of [control] that say whom a node believes, and who may look at it; see schema.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/problems.h"
#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

const Key kTrustKeys[] = {
    {.section = "control",
     .name = "readers_group",
     .field = &Node::readers_group,
     .allowed = "name of a group of this host, or empty",
     .meaning = "Its members may look at this node and its sessions, without names of files; empty: nobody.",
     .text_problem = group_problem},
    {.section = "control",
     .name = "users_group",
     .field = &Node::users_group,
     .allowed = "name of a group of this host, or empty",
     .meaning = "Its members may send and get files as themselves, if `sluice-users` runs, and see their own "
                "sessions; empty: nobody.",
     .text_problem = group_problem},
    {.section = "control",
     .name = "users_uid_min",
     .type = ValueType::kInteger,
     .field = &Node::users_uid_min,
     .min = 1,
     .max = 4'294'967'294,
     .unit = "uid",
     .meaning = "Least number of a user who may: those below are accounts of the system (UID_MIN of "
                "`/etc/login.defs`). Root is never one."},
    {.section = "control",
     .name = "users_map_file",
     .field = &Node::users_map_file,
     .allowed = "absolute path of a file, or empty",
     .meaning =
         "Which of them a peer's user is here: a line `USER@NODE LOCAL` for each. It is read anew when it "
         "changes; empty: what peers send belongs to this node.",
     .text_problem = optional_path_problem},
    {.section = "control",
     .name = "ca_file",
     .field = &Node::ca_file,
     .allowed = "absolute path of a file, or empty",
     .meaning =
         "Certificate of an authority (PEM): whom it gives a name is the peer of that name, beside those "
         "whose keys are pinned; empty: only these.",
     .text_problem = optional_path_problem},
    {.section = "control",
     .name = "crl_file",
     .field = &Node::crl_file,
     .allowed = "absolute path of a file, or empty",
     .meaning = "Lists of what the authority has revoked (CRL, PEM), one of each that signs; with `ca_file`.",
     .text_problem = optional_path_problem},
    {.section = "control",
     .name = "ca_domain",
     .field = &Node::ca_domain,
     .allowed = "a DNS domain, such as `dtn.example.org`, or empty",
     .meaning =
         "Domain of the names in its certificates: `beta.dtn.example.org` is peer `beta`, and is where it "
         "listens if nothing else is said; empty: the DNS name is the peer's name.",
     .text_problem = domain_problem},
    {.section = "control",
     .name = "addresses_file",
     .field = &Node::addresses_file,
     .allowed = "absolute path of a file, or empty",
     .meaning =
         "Where peers listen, for those of whom `sluice node trust --address` says nothing: a line for "
         "each, with its name and its address. It is read anew when it changes.",
     .text_problem = optional_path_problem},
    {.section = "control",
     .name = "expired_pins",
     .type = ValueType::kChoice,
     .field = &Node::expired_pins,
     .choices = "refuse accept",
     .meaning =
         "Of a peer whose pinned certificate is out of date. Those that `sluice node init` makes have no "
         "end."},
    {.section = "control",
     .name = "successors",
     .type = ValueType::kChoice,
     .field = &Node::successors,
     .choices = "ask accept",
     .meaning = "Of a peer that shows a new key which its pinned one has signed: `ask` refuses it until an "
                "operator takes it, `accept` lets it in until the overlap ends that the peer has named."},
};

}  // namespace

std::span<const Key> trust_keys() { return kTrustKeys; }

}  // namespace sluice::config
