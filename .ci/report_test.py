# What CI prints last names what failed and why, whatever a test printed.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import report  # noqa: E402


def test_each_failure_is_named_with_its_last_lines():
    output = "\n".join(f"line {i}" for i in range(100))
    text, failed = report.report([("fine", 1.0, "run", "ok"), ("broken", 2.5, "fail", output), ("absent", 0, "notrun", "")])
    assert failed
    assert "1 passed, 1 failed, 1 skipped" in text
    assert text.index("1 failed") < text.index("FAILED broken"), "the counts stand before the failures"
    assert text.endswith("line 99") and "line 60" in text and "line 59" not in text
    assert "skipped: absent" in text


def test_the_ten_slowest_come_first():
    text, _ = report.report([(f"t{i}", float(i), "run", "") for i in range(30)])
    assert [line.split()[-1] for line in text.splitlines()[1:11]] == [f"t{i}" for i in range(29, 19, -1)]


def test_a_run_without_a_test_has_failed():
    assert report.report([])[1]
    assert report.report([("absent", 0, "notrun", "")])[1]
    assert not report.report([("fine", 0, "run", "")])[1]


def test_one_long_line_does_not_push_out_the_others():
    text, _ = report.report([("broken", 0, "fail", "why\n" + "x" * 100_000)])
    assert "why" in text and len(text) < 2000


def test_what_ctest_wrote_is_read_whatever_a_test_printed(tmp_path):
    """ctest itself, with a test that prints bytes which XML cannot hold, and more than ctest keeps."""
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.25)
project(x NONE)
enable_testing()
add_test(NAME odd COMMAND sh -c "seq 100000; printf 'why \\\\033[1m \\\\377\\\\001 ]]> <x>'; exit 3")
""")
    subprocess.run(["cmake", "-B", tmp_path / "b", tmp_path], check=True, capture_output=True)
    results = tmp_path / "results.xml"
    subprocess.run(["ctest", "--test-dir", tmp_path / "b", "--output-junit", results, "--test-output-truncation", "head"],
                   check=False, capture_output=True)  # fmt: skip
    text, failed = report.report(report.read(results))
    assert failed and "why" in text.splitlines()[-1] and "    100000" in text, text[-2000:]


def test_a_run_that_was_cut_off_is_said(tmp_path):
    (tmp_path / "results.xml").write_text("<testsuite><testcase")
    script = pathlib.Path(__file__).parent / "report.py"
    ended = subprocess.run([sys.executable, "-B", script, tmp_path / "results.xml"], capture_output=True, text=True)
    assert ended.returncode == 1 and "did not run to their end" in ended.stderr
