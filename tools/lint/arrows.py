# Which folder may include which: data of house_rules.py.
# SPDX-License-Identifier: Apache-2.0
# Which folders a folder may include, besides itself. The longest matching name counts. Arrows run one
# way: tools, perf -> control -> dataplane/board -> dataplane/core; dataplane -> storage -> core. Within
# control: api -> node -> runtime -> what performs (attach, exports, journal, peer) -> transfer -> leg -> its two
# ends (source, destination) -> words -> what these decide by (board, catalog, deadline, parts, rate, recovery, selection).
# An end never sees a leg, so that one may have several.
_BASE = {"dataplane/base", "dataplane/base/config", "dataplane/base/options"}
_PLAIN = _BASE | {"dataplane/core", "dataplane/crc", "dataplane/board"}
_DECIDES = {"control/board", "control/catalog", "control/deadline", "control/digests", "control/parts", "control/rate",
            "control/recovery", "control/selection", "control/verdict"}  # fmt: skip
_TRANSFER = {"control/words", "control/source", "control/destination", "control/leg", "control/transfer"}
_PERFORMS = {"control/async", "control/audit", "control/attach", "control/exports", "control/gather", "control/grant", "control/hash",
             "control/identity", "control/journal", "control/names", "control/peer", "control/tree", "control/users"}  # fmt: skip
ARROWS = {
    "dataplane/base": set(),
    "dataplane/base/options": {"dataplane/base", "dataplane/core"},
    "dataplane/base/config": {"dataplane/base", "dataplane/base/options", "dataplane/core"},
    "dataplane/base/arguments": {"dataplane/base"},
    "dataplane/base/daemon": {"dataplane/base", "dataplane/base/arguments"},
    "dataplane/base/sandbox": {"dataplane/base"},
    "dataplane/core": {"dataplane/base"},
    "dataplane/crc": {"dataplane/base", "dataplane/core"}, "dataplane/crc/plain": set(),
    "dataplane/crates": set(),
    "dataplane/coding": {"dataplane/base", "dataplane/core", "dataplane/crates", "dataplane/crc"},
    "dataplane/seal": {"dataplane/base", "dataplane/core", "dataplane/crc"},
    "dataplane/board": {"dataplane/base", "dataplane/core"},
    "dataplane/sums": {"dataplane/base", "dataplane/board", "dataplane/core", "dataplane/crates", "dataplane/crc"},
    "storage": {"dataplane/base", "dataplane/core", "dataplane/crc"},
    "dataplane/net": _BASE | {"dataplane/core", "dataplane/board"},
    "dataplane/memif": {"dataplane/base", "dataplane/net"},
    "dataplane/dpdk": _BASE | {"dataplane/core", "dataplane/board", "dataplane/net", "dataplane/memif"},
    "dataplane/udp": _BASE | {"dataplane/core", "dataplane/board", "dataplane/net"},
    "dataplane/lane": _PLAIN | {"dataplane/coding", "dataplane/net", "dataplane/seal", "dataplane/sums", "storage"},
    "dataplane": _PLAIN | {"dataplane/base/daemon", "dataplane/base/sandbox", "dataplane/net", "dataplane/memif", "dataplane/dpdk", "dataplane/udp", "dataplane/coding", "dataplane/seal",
                         "dataplane/lane", "storage"},
    "control/proto": {"dataplane/base", "dataplane/base/options", "control/catalog", "control/digests", "control/names", "control/words", "control/selection"},
    "control/async": {"dataplane/base"},
    "control/receipt": {"dataplane/base", "control/identity", "control/proto"},
    "control/audit": {"dataplane/base", "control/names", "control/transfer", "control/words"},
    "control/digests": {"dataplane/base"},
    "control/hash": {"dataplane/base", "dataplane/crates", "dataplane/crc", "control/digests"},
    "control/catalog": {"dataplane/base", "control/digests", "control/selection"},
    "control/tree": {"dataplane/base", "dataplane/core", "control/catalog", "control/digests", "control/proto"},
    "control/ranges": {"dataplane/base", "dataplane/core", "dataplane/crc", "control/proto", "control/selection"},
    "control/deadline": {"dataplane/base", "dataplane/base/options", "control/rate"},
    "control/names": {"dataplane/base"},
    "control/rate": {"dataplane/base", "dataplane/base/options", "dataplane/core"},
    "control/selection": {"dataplane/base"},
    "control/recovery": {"dataplane/base", "dataplane/core", "dataplane/crc", "dataplane/board", "dataplane/sums"},
    "control/parts": {"dataplane/base", "control/recovery"},
    "control/verdict": {"dataplane/base", "control/board", "control/rate"},
    "control/board": {"dataplane/base", "dataplane/base/options", "dataplane/core", "dataplane/board", "control/rate", "control/recovery"},
    "control/words": {"dataplane/base", "dataplane/base/options", "dataplane/core", "dataplane/board", "dataplane/sums"} | _DECIDES,
    "control/source": {"dataplane/base", "dataplane/core", "dataplane/board", "control/words"} | _DECIDES,
    "control/destination": {"dataplane/base", "dataplane/core", "dataplane/board", "dataplane/sums", "control/words"} | _DECIDES,
    "control/leg": {"dataplane/base", "dataplane/core", "dataplane/board", "control/words", "control/source",
                    "control/destination"} | _DECIDES,
    "control/transfer": {"dataplane/base", "dataplane/core", "dataplane/board"} | _TRANSFER | _DECIDES,
    "control/attach": _PLAIN | {"control/async", "control/board"},
    "control/identity": _BASE | {"dataplane/core", "control/names"},
    "control/grant": _BASE | {"control/identity", "control/peer", "control/proto", "control/words"},
    "control/lease": {"dataplane/base", "control/words"},
    "control/site": _BASE | {"control/identity", "control/proto"},
    "control/enrol": _BASE | {"dataplane/base/arguments", "dataplane/base/daemon", "dataplane/base/sandbox", "control/identity", "control/peer", "control/site"},
    "control/exports": _BASE | {"dataplane/core", "dataplane/crc", "dataplane/sums", "control/catalog", "control/digests", "control/hash", "control/names", "control/selection", "control/ranges",
                             "control/tree"},
    "control/gather": _BASE | {"dataplane/core", "dataplane/crc", "control/async", "control/catalog", "control/digests", "control/exports", "control/selection", "control/tree",
                            "control/words"},
    "control/users": _BASE | {"dataplane/base/sandbox", "control/catalog", "control/digests", "control/exports", "control/gather", "control/names", "control/proto",
                           "control/selection", "control/tree"},
    "control/journal": {"dataplane/base", "dataplane/base/options", "dataplane/core", "control/digests", "control/proto", "control/selection", "control/words"},
    "control/peer": _BASE | {"dataplane/core", "control/digests", "control/identity", "control/names", "control/proto", "control/words"},
    "control/node/queue": {"dataplane/base"},
    "control/runtime": _PLAIN | {"control/node/queue", "dataplane/sums"} | _TRANSFER | _DECIDES | _PERFORMS,
    "control/metrics": {"dataplane/base", "dataplane/board", "control/transfer", "control/words"},
    "control/exporter": _BASE | {"control/metrics"},
    "control/node": _PLAIN | {"control/lease", "control/node/queue", "control/runtime", "control/metrics", "control/proto"} | _TRANSFER | _DECIDES | _PERFORMS,
    "control/client": _BASE | {"control/proto"},
    "control/api": {"dataplane/base", "dataplane/base/options", "dataplane/base/sandbox", "dataplane/core", "control/async", "control/audit", "control/digests", "control/exports", "control/identity", "control/names", "control/proto", "control/selection",
                    "control/transfer", "control/words", "control/node"},
    "control": _PLAIN | {"dataplane/base/daemon", "dataplane/base/sandbox", "control/proto", "control/transfer", "control/runtime", "control/node", "control/api",
                         "control/exporter", "control/receipt"}
               | _DECIDES | _PERFORMS,
    "tools/fleet/plan": set(),
    "tools/unattended": set(),
    "tools/fleet": {"dataplane/base", "tools/fleet/plan", "control/selection"},
    "tools/cli": _BASE | {"dataplane/base/arguments", "dataplane/core", "control/client", "control/digests", "control/hash", "control/proto", "control/identity", "control/metrics",
                         "control/names", "control/receipt", "control/selection", "control/site", "tools/doctor", "tools/fleet", "tools/fleet/plan", "tools/manifest", "tools/unattended"},
    "tools/manifest": {"dataplane/base", "control/digests", "control/exports", "control/hash"},
    "tools/doctor": _BASE | {"control/client", "control/identity"},
    "tools": None,  # anything
    "perf": None,
}  # fmt: skip
# What tests and fuzzers of a folder may include besides.
ARROWS_OF_TESTS = {
    "dataplane/crc/plain": {"dataplane/crc"},  # the same sums another way
    "control/tree": {"dataplane/crc"},
    "control/source": {"control/transfer", "control/leg"},  # the fixture of a whole transfer plays the peer
    "control/destination": {"control/transfer", "control/leg"},
    "dataplane/dpdk": {"dataplane/base/sandbox"},  # a memif comes and goes under it
    "tools/cli": {"dataplane/base/daemon", "control/api"},  # the documents name the daemons' options; the real server answers
    "control/client": {"control/api"},  # the real server answers calls
    "control/api": {"control/board", "control/gather", "control/runtime"},  # requests are turned into what a transfer is asked for
}
