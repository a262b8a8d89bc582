# Each house rule reports what it is for, and is silent otherwise.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import house_rules  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


@pytest.fixture
def tree(tmp_path):
    def make(rule, **contents):
        files = []
        for name, text in contents.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            files.append(name)
        return list(rule(tmp_path, sorted(files)))

    return make


@pytest.mark.parametrize("header", ["<rte_mbuf.h>", "<liburing.h>", "<thread>", "<mutex>", "<chrono>", "<random>",
                                    "<sys/socket.h>"])  # fmt: skip
def test_core_is_pure(tree, header):
    problems = tree(house_rules.check_includes, **{"dataplane/core/a.cc": SPDX + f"#include {header}\n"})
    assert problems and problems[0].startswith("dataplane/core/a.cc:2: ")


def test_core_may_include_the_plain_library_and_its_tests_may_be_random(tree):
    assert not tree(
        house_rules.check_includes,
        **{
            "dataplane/core/a.cc": '#include <vector>\n#include "dataplane/core/a.h"\n',
            "dataplane/core/a_test.cc": "#include <random>\n",
        },
    )


def test_only_one_folder_knows_dpdk(tree):
    text = "#include <rte_ethdev.h>\n"
    problems = tree(house_rules.check_includes, **{"dataplane/dpdk/p.cc": text, "dataplane/lane/l.cc": text})
    assert len(problems) == 1 and problems[0].startswith("dataplane/lane/l.cc:1: ")


def test_lanes_know_datagrams_and_no_frames(tree):
    frames = '#include "dataplane/net/frame.h"\n'
    problems = tree(
        house_rules.check_includes,
        **{
            "dataplane/lane/a.cc": frames,
            "dataplane/lane/b.cc": '#include "dataplane/net/datagram_queue.h"\n',
            "dataplane/lane/a_test.cc": frames,
            "dataplane/lane/node_for_fuzz.h": frames,
        },
    )
    assert len(problems) == 1 and problems[0].startswith("dataplane/lane/a.cc:1: ")


@pytest.mark.parametrize(
    ("source", "header"),
    [
        ("dataplane/core/a.cc", "dataplane/board/board.h"),
        ("dataplane/board/a.cc", "control/session/session_manager.h"),
        ("storage/a.cc", "dataplane/net/port.h"),
        ("dataplane/net/a.cc", "dataplane/memif/rings.h"),
        ("dataplane/memif/a.cc", "dataplane/dpdk/eal.h"),
        ("dataplane/lane/a.cc", "dataplane/dpdk/eal.h"),
        ("control/session/a.cc", "dataplane/net/port.h"),
        ("control/session/a.cc", "storage/ring.h"),
        ("control/rate/a.cc", "control/session/session_manager.h"),
        ("control/main.cc", "tools/cli/output.h"),
        ("tools/cli/a.cc", "dataplane/lane/worker.h"),
    ],
)
def test_arrows_do_not_run_backwards(tree, source, header):
    problems = tree(house_rules.check_includes, **{source: f'#include "{header}"\n'})
    assert len(problems) == 1 and header in problems[0]


@pytest.mark.parametrize(
    ("source", "header"),
    [
        ("dataplane/lane/a.cc", "storage/ring.h"),
        ("dataplane/main.cc", "dataplane/lane/worker.h"),
        ("storage/a.cc", "dataplane/crc/crc.h"),
        ("control/session/a.cc", "dataplane/board/board.h"),
        ("tools/sim/a.cc", "control/recovery/loss.h"),
    ],
)
def test_arrows_run_forwards(tree, source, header):
    assert not tree(house_rules.check_includes, **{source: f'#include "{header}"\n'})


def test_long_files_are_named(tree):
    problems = tree(house_rules.check_sizes, **{"a.cc": "\n" * 400, "b.cc": "\n" * 401, "c.md": "\n" * 900})
    assert problems == ["b.cc: 401 lines, at most 400; split it by what its parts do"]


def test_every_source_names_its_licence(tree):
    problems = tree(
        house_rules.check_licence, **{"a.cc": SPDX, "b.py": "print()\n", "CMakeLists.txt": "", "data.json": ""}
    )
    assert [problem.split(":")[0] for problem in problems] == ["CMakeLists.txt", "b.py"]


def test_documents_name_no_missing_file(tree):
    text = (
        "`dataplane/core/a.h` [good](../dataplane/core/a.h#L3) `dataplane/core/` `dataplane/core/*.h`\n"
        "`dataplane/core/{a,b}.h` and [bad](gone.md)\n"
        "`send a/b` `https://a/b` [site](https://example.org/x.md) `/etc/passwd` `build/release` `READ.md`\n"
        "```\ndocs/only-an-example.md `docs/no.md`\n```\n"
    )
    problems = tree(house_rules.check_documents, **{"dataplane/core/a.h": "", "docs/D.md": text})
    assert sorted(problems) == [
        "docs/D.md:2: names dataplane/core/b.h, which is not there",
        "docs/D.md:2: names docs/gone.md, which is not there",
        "docs/D.md:3: names READ.md, which is not there",
    ]


def test_sources_name_no_missing_document(tree):
    problems = tree(house_rules.check_documents, **{"a.h": "// docs/WIRE.md\n// docs/GONE.md\n", "docs/WIRE.md": ""})
    assert problems == ["a.h:2: names docs/GONE.md, which is not there"]
