// The keys of exports; see schema.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/problems.h"
#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

constexpr uint64_t kCountMax = 1ULL << 40;
constexpr uint64_t kBytesMax = 1ULL << 60;

const Key kExportKeys[] = {
    {.section = "export",
     .name = "name",
     .allowed = "`[a-z0-9][a-z0-9_-]{0,62}`",
     .meaning = "Name of the export: peers may write `NAME/path` instead of the absolute path.",
     .text_problem = name_problem,
     .required = true},
    {.section = "export",
     .name = "path",
     .allowed = "absolute path of a directory",
     .meaning = "Root of the export; nothing outside it is ever opened.",
     .text_problem = path_problem,
     .required = true},
    {.section = "export",
     .name = "mode",
     .type = ValueType::kChoice,
     .choices = "r w rw rm wm rwm",
     .meaning =
         "What peers may do beneath it: be sent files and lists of names (`r`); send files (`w`); manage "
         "it (`m`), that is to make directories, and to move and remove names."},
    {.section = "export",
     .name = "owners",
     .type = ValueType::kChoice,
     .choices = "no yes",
     .meaning =
         "May peers that send files to it (`w`) say whose these are (`--owner`, `--group`)? Files may then "
         "belong to any user, `root` as well."},
    {.section = "export",
     .name = "acls",
     .type = ValueType::kChoice,
     .choices = "no yes",
     .meaning = "May peers that send files to it (`w`) say who else may use these, by POSIX ACLs (`--acls`)? "
                "That of "
                "a directory counts for all that is made in it later, by whomever."},
    {.section = "export",
     .name = "direct",
     .type = ValueType::kChoice,
     .choices = "yes no",
     .meaning = "Are its files read and written past the page cache (O_DIRECT), where their file system can? "
                "With `no` "
                "the file system joins what arrives, for one whose stripes are larger than 1 MiB (RUNBOOK, "
                "\"Striped file systems\")."},
    {.section = "export",
     .name = "peers",
     .type = ValueType::kPeers,
     .allowed = "names of peers, each as `NAME` or `NAME:MODE`",
     .meaning = "Which peers may use it, in sessions that either side asks for; one with a `MODE` of its own "
                "no more "
                "than that. To all others it is as if it were not there. `[]`: to none."},

    {.section = "export.quota",
     .name = "peer",
     .allowed = "name of a peer",
     .meaning =
         "Whose sessions it limits, those that this peer begins. The one that names a peer counts alone; "
         "one without this key is for every peer that has none of its own.",
     .text_problem = name_problem},
    {.section = "export.quota",
     .name = "user",
     .allowed = "name of a user of this host, or `*`",
     .meaning =
         "Whose sessions it limits in place of a peer's: of a member of `[control] users_group`, begun here "
         "or, by the map of users, by a peer, whose own quota counts as well. `*`: of every user who has "
         "none of their own.",
     .text_problem = user_problem},
    {.section = "export.quota",
     .name = "session_bytes",
     .type = ValueType::kSize,
     .field = &Quota::session_bytes,
     .min = 1,
     .max = kBytesMax,
     .unit = "bytes",
     .meaning = "Bytes that one session may write beneath the export, or read from it, by the sizes of its "
                "files; one that has more ends before any of the excess is stored."},
    {.section = "export.quota",
     .name = "session_files",
     .type = ValueType::kInteger,
     .field = &Quota::session_files,
     .min = 1,
     .max = kCountMax,
     .unit = "names",
     .meaning = "Names of one session, likewise: files, directories and links."},
    {.section = "export.quota",
     .name = "sessions_max",
     .type = ValueType::kInteger,
     .field = &Quota::sessions_max,
     .min = 1,
     .max = 4096,
     .unit = "sessions",
     .meaning =
         "Sessions of one peer, or user, that have begun beneath the export and have not ended, paused ones "
         "too; further ones are refused."},
    {.section = "export.quota",
     .name = "rate",
     .type = ValueType::kRate,
     .field = &Quota::rate_bps,
     .min = 100'000,
     .max = 800'000'000'000,
     .unit = "bit/s",
     .meaning = "Rate of one session on the wire; it goes no faster."},
};

}  // namespace

std::span<const Key> export_keys() { return kExportKeys; }

}  // namespace sluice::config
