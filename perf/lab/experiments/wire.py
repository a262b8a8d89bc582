# Memory to discard over memif, CRC-64 on every chunk and no cipher; beside the same frames by a bare tx/rx pair.
#
# `sluice`: one session of generated memory into null:, its payload over its own time. `raw`: frames of the same
# length on the same device, bytes of whole frames over the time from the first to the last that arrived; so the
# ratio counts our headers as lost; it is taken within each round, of which there are twice as many as elsewhere. While raw runs the nodes are stopped (SIGSTOP): idle ones would take
# their share of the two cores.
# SPDX-License-Identifier: Apache-2.0
from ..bench import bytes_for
from ..errors import LabError
from ..figures import by_round, median, ratio, rounded, spread
from ..nodes import FRAME_OVERHEAD_BYTES
from ..probe import raw
from . import shapes

HELP = "memory to discard over memif with CRC-64, beside the same frames without a protocol"
REAL = True
PACKAGES = ()
_FIRST_BYTES = 1 << 30
_CHUNK_BYTES = 8192


def run(bench):
    settings = [{"setting": "sluice"}, {"setting": "raw"}]
    seconds = bench.pick(1.0, 4.0)
    with bench.nodes(settings={"transfer": {"protection": "crc"}}) as nodes:
        runs = _Runs(nodes, seconds)
        nodes.start()
        bench.describe(nodes)
        nodes.freeze()
        samples = bench.interleave(settings, runs.measure, rounds=2)
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": {**summary(samples), "crc_variant": bench.described.get("crc_variant")}}


def summary(samples):
    goodput, raw_gbps = (median([each.get("goodput_gbps") for each in runs]) for runs in samples)
    return {"goodput_gbps": rounded(goodput), "raw_gbps": rounded(raw_gbps),
            **spread("ratio", by_round(*samples, "goodput_gbps"))}  # fmt: skip


class _Runs:
    def __init__(self, nodes, seconds):
        self._nodes = nodes
        self._seconds = seconds
        self._bytes = None

    def measure(self, setting):
        return self._raw() if setting["setting"] == "raw" else self._sluice()

    def _sluice(self):
        self._nodes.thaw()
        try:
            # What ran meanwhile has the caches: the first transfer takes them back.
            first = self._nodes.transfer(f"memory:{_FIRST_BYTES}", "null:", "--rate", shapes.RATE)
            self._bytes = self._bytes or bytes_for(first, self._seconds)
            return self._nodes.transfer(f"memory:{self._bytes}", "null:", "--rate", shapes.RATE, "--crc", "crc64",
                                        "--chunk-bytes", _CHUNK_BYTES)  # fmt: skip
        finally:
            self._nodes.freeze()

    def _raw(self):
        if self._nodes.real:
            raise LabError("raw: not run with --node, whose ports belong to the nodes")
        with shapes.probe_place(self._nodes) as place:
            figures = raw(place, _CHUNK_BYTES + FRAME_OVERHEAD_BYTES, self._seconds)
        return {"goodput_gbps": figures["gbps"], "cpu_s_per_gb": ratio(figures["cpu_s"], figures["bytes"] / 1e9),
                "rss_mb": figures["rss_mb"], "frames": figures["frames"], "bytes": figures["bytes"]}  # fmt: skip


def plots(result):
    return [("goodput", lambda axes: shapes.bars(axes, result["rows"], "setting", "goodput_gbps", "Gbit/s"))]
