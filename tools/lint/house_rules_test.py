# Each house rule reports what it is for, and is silent otherwise.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cxx  # noqa: E402
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


@pytest.mark.parametrize("header", ["<asio.hpp>", "<asio/io_context.hpp>", "<spdlog/spdlog.h>", "<sqlite3.h>", "<unistd.h>",
                                    "<fcntl.h>", "<sys/stat.h>", "<thread>", "<chrono>", "<mutex>", "<filesystem>",
                                    "<google/protobuf/message.h>", '"control/proto/peer.pb.h"'])  # fmt: skip
@pytest.mark.parametrize("folder", ["board", "catalog", "rate", "recovery", "selection", "transfer"])
def test_what_decides_in_control_is_pure(tree, folder, header):
    source = f"control/{folder}/a.cc"
    problems = tree(house_rules.check_includes, **{source: SPDX + f"#include {header}\n"})
    assert len(problems) == 1 and problems[0].startswith(f"{source}:2: ")


def test_tests_of_what_is_pure_may_be_random_and_what_performs_may_do_anything(tree):
    assert not tree(
        house_rules.check_includes,
        **{
            "control/transfer/a.h": "#include <vector>\n#include <fmt/format.h>\n",
            "control/transfer/a_test.cc": "#include <random>\n#include <unistd.h>\n",
            "control/runtime/a.cc": "#include <unistd.h>\n#include <asio/post.hpp>\n",
        },
    )
    assert tree(house_rules.check_includes, **{"control/transfer/a_test.cc": "#include <asio/post.hpp>\n"})


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
        ("dataplane/board/a.cc", "control/board/flow_table.h"),
        ("storage/a.cc", "dataplane/net/port.h"),
        ("dataplane/net/a.cc", "dataplane/memif/rings.h"),
        ("dataplane/memif/a.cc", "dataplane/dpdk/eal.h"),
        ("dataplane/lane/a.cc", "dataplane/dpdk/eal.h"),
        ("control/runtime/a.cc", "dataplane/net/port.h"),
        ("control/runtime/a.cc", "storage/ring.h"),
        ("control/rate/a.cc", "control/transfer/transfer.h"),
        ("control/transfer/a.cc", "control/runtime/transfer_task.h"),
        ("control/transfer/a.cc", "control/attach/client.h"),
        ("control/transfer/a.cc", "control/journal/journal.h"),
        ("control/board/a.cc", "control/attach/link.h"),
        ("control/journal/a.cc", "control/runtime/services.h"),
        ("control/runtime/a.cc", "control/node/manager.h"),
        ("control/node/a.cc", "control/api/server.h"),
        ("control/api/a.cc", "control/gather/sources.h"),
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
        ("control/transfer/a.cc", "dataplane/board/board.h"),
        ("control/transfer/a.cc", "control/recovery/sender.h"),
        ("control/runtime/a.cc", "control/attach/client.h"),
        ("control/api/a_fuzz.cc", "control/gather/sources.h"),
        ("tools/sim/a.cc", "control/transfer/transfer.h"),
    ],
)
def test_arrows_run_forwards(tree, source, header):
    assert not tree(house_rules.check_includes, **{source: f'#include "{header}"\n'})


def test_long_files_are_named(tree):
    problems = tree(house_rules.check_sizes, **{"a.cc": "\n" * 400, "b.cc": "\n" * 401, "c.md": "\n" * 900, "d.proto": "\n" * 500})
    assert problems == ["b.cc: 401 lines, at most 400; split it by what its parts do"]


_LONG = "int long_one(int a) {\n" + "  ++a;\n" * 69 + "}\n"  # 71 lines


def test_long_functions_are_named(tree):
    python = "def long_one():\n" + "    pass\n" * 70
    problems = tree(
        house_rules.check_functions,
        **{
            "control/a.cc": "\nnamespace sluice {\nnamespace {\n" + _LONG + "}\n}\n",
            "control/b.cc": _LONG.replace("  ++a;\n", "", 1),
            "control/b_test.cc": _LONG,
            "tools/a.h": "class A {\n public:\n" + _LONG + "};\n",
            "tools/a.py": python,
            "tools/b.py": python.replace("    pass\n", "", 1),
            "tools/b_test.py": python,
            "tools/wrong.py": "def long_one(:\n",
        },
    )
    assert problems == [
        f"{where}: long_one has 71 lines, at most 70; give each of its jobs a function of its own"
        for where in ("control/a.cc:4", "tools/a.h:3", "tools/a.py:1")
    ]


def test_functions_are_told_from_everything_else():
    text = """
// void comment() { }
namespace sluice::lane {
using namespace std;
enum class Colour : uint8_t { kRed, kGreen };
constexpr int kTable[] = {1, 2};
const auto kLambda = [](int a) { return a; };
template <typename T, int N = (1 + 2)>
class alignas(64) Fifo final : public Base<int> {
 public:
  explicit Fifo(int a)
      : a_(Part{a}),
        b_{a} {
    c_ = "{;";
  }
  ~Fifo() { clear(); }
  Fifo& operator=(const Fifo&) = delete;
  bool operator==(const Fifo& other) const { return a_ == other.a_; }
  std::array<int, sizeof(int)> data_{};

 private:
  struct Part {
    int get(int n = 3) const noexcept { return n; }
    int x = 0;
  };
};

auto Fifo::Part::take(
    std::span<const int> some) -> std::vector<int> {
  const auto each = [&] {
    return some;
  };
  if (some.empty()) {
    return {};
  }
  return each();
}
decltype(auto) tie(int& a) { return a; }
}  // namespace sluice::lane

extern "C" {
int main() { return 0; }
}
TEST(Fifo, Takes) {
  EXPECT_TRUE(true);
}
"""
    found = [(name, lines) for _, name, lines in cxx.functions(text)]
    assert found == [("Fifo", 5), ("~Fifo", 1), ("operator", 1), ("get", 1), ("Fifo::Part::take", 10), ("tie", 1),
                     ("main", 1), ("TEST", 3)]  # fmt: skip


def test_every_source_names_its_licence(tree):
    problems = tree(
        house_rules.check_licence,
        **{
            "a.cc": SPDX,
            "b.py": "print()\n",
            "c.h": "// What it is. SPDX-License-Identifier: Apache-2.0\n",
            "d.h": "// What it is. SPDX-License-Identifier:\n// Apache-2.0\n",
            "CMakeLists.txt": "",
            "data.json": "",
        },
    )
    assert [problem.split(":")[0] for problem in problems] == ["CMakeLists.txt", "b.py", "c.h", "d.h"]


_BIG = "class Big {\n public:\n  int f() { return 1; }\n\n private:\n" + "".join(f"  int m{n}_ = 0;\n" for n in range(26)) + "};\n"


def test_a_class_has_no_more_data_than_one_purpose_needs(tree):
    problems = tree(
        house_rules.check_members,
        **{
            "control/a.h": "\n" + _BIG,
            "control/b.h": _BIG.replace("  int m3_ = 0;\n", ""),
            "control/a_test.cc": _BIG,
            "tools/sim/plan.h": _BIG,
            "dataplane/base/config/config.h": _BIG.replace("Big", "Node"),
        },
    )
    assert [problem.split(";")[0] for problem in problems] == ["control/a.h:2: Big has 26 data members, at most 25"]


@pytest.mark.parametrize("name", ["RxSide::Flow", "rx::Side::Flow", "Pool<int>", "Side::Pool<std::vector<int>>"])
def test_a_class_with_a_qualified_name_is_seen(tree, name):
    problems = tree(house_rules.check_members, **{"dataplane/lane/a.h": _BIG.replace("class Big", f"struct {name}")})
    assert [problem.split(";")[0] for problem in problems] == [
        f"dataplane/lane/a.h:1: {name} has 26 data members, at most 25"
    ]


def test_a_struct_within_a_class_counts_by_itself(tree):
    inner = "  struct Inner {\n" + "".join(f"    int i{n} = 0;\n" for n in range(20)) + "  };\n  Inner inner_;\n"
    small = _BIG.replace("".join(f"  int m{n}_ = 0;\n" for n in range(6)), inner)
    assert not tree(house_rules.check_members, **{"control/a.h": small})
    large = small.replace("    int i0 = 0;\n", "".join(f"    int j{n} = 0;\n" for n in range(7)))
    problems = tree(house_rules.check_members, **{"control/a.h": large})
    assert [problem.split(";")[0] for problem in problems] == ["control/a.h:6: Inner has 26 data members, at most 25"]


def test_members_are_told_from_everything_else():
    text = """
// class Comment { int a_; };
enum class Colour : uint8_t { kRed, kGreen };
class alignas(64) Fifo final : public Base<int> {
 public:
  using T = int;
  explicit Fifo(int a) : a_(a), b_{a} { c_ = "{;"; }
  Fifo& operator=(const Fifo&) = delete;
  bool operator==(const Fifo&) const = default;
  [[nodiscard]] std::pair<int, int> both() const { return {a_, b_}; }
  static constexpr int kMax = 3;
  friend class Other;
  enum class Inner : int { kA, kB };
  struct Part { int x; int y; };

 private:
  const int a_;
  int b_{1};
  std::map<std::string, std::pair<int, int>> c_;  // no; data
  mutable std::atomic<int> d_{0};
  int e_[4] = {1, 2}, f_ = 2;
  uint8_t g_ : 3;
  struct { int z; } h_;
  Part* i_ = nullptr;
};
"""
    found = {name: members for _, name, members in cxx.classes(text)}
    assert found == {"Fifo": ["a_", "b_", "c_", "d_", "e_", "f_", "g_", "h_", "i_"], "Part": ["x", "y"]}


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


def test_documents_name_no_missing_test(tree):
    problems = tree(
        house_rules.check_named_tests,
        **{"docs/D.md": "`a/b_test.cc` `Is`, `IsNot`; `c_test.py` `test_it`\n", "a/b_test.cc": "TEST(A, Is) {}"},
    )
    assert problems == [
        "docs/D.md:1: names the test IsNot, which is not in a/b_test.cc",
        "docs/D.md:1: names the test test_it, which is not in c_test.py",
    ]


def test_cited_sections_are_there(tree):
    code = '// docs/WIRE.md, "Keys and\n// seals"; WIRE, "Gone". It is not SAID, "Elsewhere".\nint a;\n'
    document = 'See [WIRE](WIRE.md), "Keys and seals", "Not there"; `docs/WIRE.md`, "ls".\n'
    problems = tree(
        house_rules.check_cited_sections,
        **{
            "docs/WIRE.md": "# The wire\n## 1.2 Keys and seals\n### `ls`\n```\n# Not there\n```\n",
            "a/b.cc": code,
            "docs/D.md": document,
        },
    )
    assert sorted(problems) == [
        'a/b.cc:2: cites WIRE, "Gone", which is not there',
        'docs/D.md:1: cites WIRE, "Not there", which is not there',
    ]


def test_comments_name_no_missing_path(tree):
    code = (
        "// docs/WIRE.md, docs/GONE.md; control/board/ (control/gone), control/{board,lost}/a.h.\n"
        '#include "control/proto/made.pb.h"\n'
        "/* see shared/design/notes.md */ int a; // https://example.org/docs/x.md a/docs/y.md\n"
    )
    script = "#" " docs/GONE.md\nprint('tools/made')\nprint()  #" " tools/gone\n"
    problems = tree(
        house_rules.check_documents,
        **{
            "control/board/a.h": code,
            "a.py": script,
            "docs/WIRE.md": "See shared/seeds/1 and control/board, not `x`.\n",
        },
    )
    assert sorted(problems) == [
        "a.py:1: names docs/GONE.md, which is not there",
        "a.py:3: names tools/gone, which is not there",
        "control/board/a.h:1: names control/gone, which is not there",
        "control/board/a.h:1: names control/lost/a.h, which is not there",
        "control/board/a.h:1: names docs/GONE.md, which is not there",
        "control/board/a.h:3: names shared/design/notes.md, which is not there",
        "docs/WIRE.md:1: names shared/seeds/1, which is not there",
    ]


def test_the_reference_names_each_schema(tree):
    printed = 'print({"schema": "sluice.a.v1"}, {"schema": "sluice.b.v1"}, {"schema": "sluice.c.v1"})\n'
    problems = tree(
        house_rules.check_schemas,
        **{"tools/a.py": printed, "tools/a_test.py": printed, "docs/REFERENCE.md": "| `sluice.a.v1` | `sluice.b.v12` |\n"},
    )
    assert sorted(problems) == [
        "tools/a.py:1: docs/REFERENCE.md does not name sluice.b.v1",
        "tools/a.py:1: docs/REFERENCE.md does not name sluice.c.v1",
    ]


def test_no_merge_is_left_half_done(tree):
    marked = "a\n" + "<" * 7 + " HEAD\nb\n=======\nc\n" + ">" * 7 + " main\n"
    problems = tree(house_rules.check_merges, **{"CHANGELOG.md": marked, "docs/D.md": "Title\n=======\n<<<\n"})
    assert [each.split(": ")[0] for each in problems] == ["CHANGELOG.md:2", "CHANGELOG.md:6"]
