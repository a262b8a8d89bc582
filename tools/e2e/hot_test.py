# No worker allocates or frees memory while frames flow: with an allocator that would end it (tools/hotmalloc).
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness.system import is_root
from harness.wires import EmulatedWire, MemifWire
from transfers import HOTMALLOC, MIB, SANITIZED, forget, make_file, pull, push

pytestmark = pytest.mark.skipif(SANITIZED, reason="built with a sanitizer, which has its own allocator")


def preloaded(_side):
    return ["env", f"LD_PRELOAD={HOTMALLOC}"]


@pytest.fixture(scope="module", params=["memif", "lossy"])
def pair(make_pair, request):
    lossy = {"loss": {"probability": 0.01}, "duplicate": {"probability": 0.01}}
    wire = MemifWire() if request.param == "memif" else EmulatedWire(lossy)

    def prepare(pair):
        if is_root():
            for node in pair.nodes:
                node.add_export("memory", pair.mount_tmpfs(f"{node.name}-tmpfs", 200))
                node.write_configuration()

    return make_pair(wire=wire, bytes_needed=256 << 20, prepare=prepare, prefix=preloaded)


@pytest.mark.parametrize("options", [[], ["--lanes", "4", "--chunk-bytes", "1400"], ["--digest", "blake3,adler32,crc32c"]],
                         ids=["one", "four", "digests"])  # fmt: skip
def test_files_on_disk(pair, options):
    source = make_file(pair.a, 40 * MIB + 7)
    target = push(pair, source, *options)
    back = pull(pair, target, *options)
    forget(source, target, back)


@pytest.mark.skipif(not is_root(), reason="mounting a tmpfs needs root")
def test_files_in_memory(pair):
    source = make_file(pair.a, 40 * MIB + 7, export="memory")
    target = push(pair, source, to="memory/")
    forget(source, target)


def test_nothing_but_the_wire(pair):
    pair.a.must("send", f"memory:{300 * MIB}", "b:null:", "--lanes", "2")
