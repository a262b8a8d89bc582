# The papers beside ours: their numbers hold together, every number on the page has a source, a run that is cut off goes on.
# SPDX-License-Identifier: Apache-2.0
import collections
import copy
import json
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ElementTree

import pytest
from harness.system import wait_until
from lab import netlogs
from lab.bench import Bench
from lab.errors import USAGE, LabError
from lab.kept import Kept
from lab.seeds import charts, command, drawing, page, papers, rendering, results, tracing
from lab.seeds.exhibits import ALL
from lab.seeds.parts import Axis, Chart, Judged, Series, Table, by_ratios, figure


@pytest.fixture
def known():
    return papers.load()


@pytest.fixture
def document(known):
    return copy.deepcopy(known.document)


# ---- the numbers --------------------------------------------------------------------------------


def test_all_that_is_committed_passes_the_check():
    pytest.importorskip("jsonschema")
    assert command.check() == []


def test_every_table_and_figure_is_there(known):
    count = collections.Counter(each["paper"] for each in known.exhibits.values())
    assert count == {"FMFT": 2, "Phatpackets": 11, "Tornado": 3, "MCDTP": 7, "HIPSTER": 7}


def _broken(document, how):
    values = {each["id"]: each for each in document["values"]}
    if how == "exhibit":
        document["exhibits"] = [each for each in document["exhibits"] if each["id"] != "hipster-table-1"]
    elif how == "key":
        values["F-file"]["excerpt"] = "test file"
    elif how == "number":
        values["P-t1-maci-gain"]["value"] = 7.11
    elif how == "arithmetic":
        del values["P-t1-maci-gain"]["arithmetic"]
    elif how == "plot":
        values["P-f8"]["value"] = 0.003
    elif how == "printed":
        del values["F-crc-824"]["value"]
    elif how == "unknown exhibit":
        values["F-crc-824"]["exhibits"] = ["fmft-figure-9"]
    elif how == "twice":
        document["values"].append(dict(values["F-file"]))


@pytest.mark.parametrize(("how", "naming"), [
    ("exhibit", "hipster-table-1"), ("key", "excerpt"), ("number", "not 7.11"), ("arithmetic", "'arithmetic' is a required property"),
    ("plot", "P-f8"), ("printed", "F-crc-824"), ("unknown exhibit", "fmft-figure-9"), ("twice", "value F-file: there are 2"),
])  # fmt: skip
def test_what_is_wrong_with_the_numbers_is_named(document, how, naming):
    pytest.importorskip("jsonschema")
    _broken(document, how)
    found = papers.problems(document, list(ALL))
    assert found and any(naming in each for each in found), found


def test_arithmetic_is_of_numbers_alone():
    assert papers.evaluate("1 - exp(-1012 / 1024)") == pytest.approx(0.6278, abs=1e-4)
    for text in ("__import__('os')", "a + 1", "2 +", "exp()", "'1'"):
        with pytest.raises(ValueError, match="no arithmetic"):
            papers.evaluate(text)


# ---- the page -----------------------------------------------------------------------------------


def _result(name, rows, **more):
    machine = {"cpu": "<cpu>", "cpus": 2, "system": "Debian", "busy_share_at_start": 0.02, "busy_share_at_end": 0.9}
    return {"experiment": name, "version": "0.1", "machine": machine, "started": "2026-11-27", "quick": False, "repeats": 2, "rows": rows,
            "summary": {}, **more}  # fmt: skip


def _hipster():
    rows = [{"channel": channel, "what": what, "size_mb": size, "unit": "MB", "mb_s": speed, "wall_s": size / speed, "half_ratio": 1.0,
             "useful_mb_s": [1.0, 2.0], "runs": [{"mb_s": speed, "useful_mb_s": [1.0, 2.0]}, {"mb_s": speed + 1, "useful_mb_s": [1.0, 2.5]}]}
            for channel in ("sluice-wire", "sluice-channel") for what, speed in (("sluice", 30.0), ("hipster", 8.0)) for size in (1, 200, 500)]
    laws = {name: [{"length": 1012, "sent": 100, "dropped": 0.6, "dropped_law": 0.628, "delay_ms": 150.0, "delay_ms_law": 148.0,
                    "distance": 1.0, "delays_ms": [100.0, 200.0]}] for name in ("sluice-wire", "sluice-channel")}  # fmt: skip
    return _result("hipster", rows, laws=laws)


@pytest.fixture
def drawn(known):
    return drawing.draw(known, {"hipster": _hipster()}, {"mtu": {"error": "no <room>"}})


def _parsed(text):
    return ElementTree.fromstring(text.replace("<!DOCTYPE html>", ""))


def test_the_page_is_one_well_formed_file_without_foreign_hosts(known, drawn):
    text = page.page(known, drawn, {"hipster": _hipster()})
    root = _parsed(text)
    assert len(text) < 5_000_000
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(ids) == len(set(ids)) and set(known.exhibits) <= set(ids)
    own = {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}
    assert set(re.findall(r"https?://[^\"'<> ]+", text)) <= own
    assert not re.search(r"<script|<img|<link|url\(|@import", text)
    images = [node for node in root.iter() if node.tag.endswith("}svg")]
    for image in images:
        title, about = (next((node.text for node in image if node.tag.endswith("}" + part)), None) for part in ("title", "desc"))
        assert title and about and image.get("role") == "img"
    assert "no &lt;room&gt;" in text and "<room>" not in text and "&lt;cpu&gt;" in text


def test_what_a_reader_must_know_of_a_run_is_said():
    result = _hipster()
    assert drawing.remarks(result) == ["on a machine that had other work (90% of its CPUs)"]
    result["machine"]["busy_share_at_end"] = 0.1
    assert drawing.remarks(result) == [] and drawing.remarks({**result, "brief": True}) == ["a short run"]


def test_what_failed_or_is_not_there_is_said(drawn):
    of = {each.name: each.judged for each in drawn}
    assert of["phatpackets-figure-1"].verdict == "not run" and "no <room>" in of["phatpackets-figure-1"].reason
    assert of["tornado-figure-1"].verdict == "not run" and "No result" in of["tornado-figure-1"].reason
    assert of["hipster-table-1"].verdict == "better" and of["hipster-figure-4"].verdict == "reproduced"


def test_a_result_whose_rows_failed_takes_its_exhibits_and_not_the_page(known):
    broken = _result("fmft", [{"size_bytes": 10**8, "chunk_size": 900, "crc": "none", "error": "gone"}])
    of = {each.name: each.judged for each in drawing.draw(known, {"fmft": broken}, {})}
    assert of["fmft-figure-2"].verdict == "not run" and "lacks" in of["fmft-figure-2"].reason


def test_every_number_is_found_where_it_is_said_to_come_from(known, drawn):
    pytest.importorskip("jsonschema")
    made = tracing.document(drawn, {"hipster": _hipster()})
    assert tracing.problems(made, known) == []
    table = next(each for each in made["exhibits"] if each["id"] == "hipster-table-1")
    table["right"]["rows"][0][2]["y"] += 1
    table["left"]["rows"][0][1]["of"] = "H-nothing"
    found = tracing.problems(made, known)
    assert len(found) == 2 and "H-nothing" in found[0] and "hipster/rows" in found[1]
    made["exhibits"].pop(0)
    assert any("fmft-figure-2: not on the page" in each for each in tracing.problems(made, known))


def test_the_rendering_has_a_picture_for_each_figure(known, drawn, tmp_path):
    (tmp_path / "old.svg").write_text("")
    rendering.write(tmp_path, known, drawn, {"hipster": _hipster()})
    text = (tmp_path / "README.md").read_text()
    pictures = re.findall(r"\]\(([\w.-]+\.svg)\)", text)
    assert sorted(pictures) == sorted(path.name for path in tmp_path.glob("*.svg"))
    for name in pictures:
        _parsed((tmp_path / name).read_text())


def test_axes_are_logarithmic_where_the_panels_differ_by_more_than_a_hundred():
    axis = Axis("speed", "MB/s")
    near, far = ([charts.Scale(axis, values, 0, 100, from_zero=True) for values in ([1.0, 99.0], [1.0, 101.0])])
    assert not near.log and far.log
    assert far.at(0) == far.at(1.0) == 0 and near.at(0) == 0
    left = Chart(Axis("x"), axis, [Series("a", [{"x": 1, "y": 1.0}], "marks")])
    right = Chart(Axis("x"), axis, [Series("b", [{"x": 1, "y": 1e4, "low": 5e3, "high": 2e4}])])
    assert ">1e4<" in charts.pair(left, right, "n", ("t", "d")) or ">10000<" in charts.pair(left, right, "n", ("t", "d"))


def test_verdicts_of_ratios():
    assert by_ratios([1.0, 1.02], "x")[0] == "reproduced"
    assert by_ratios([0.9, 9.0], "x")[0] == "worse"
    assert by_ratios([1.0, 2.0, 3.0], "x") == ("better", "2 times x (1 to 3)")


def test_numbers_for_people():
    assert [figure(value) for value in (0, 0.1753, 12345.6, 2.3e-10, 1e9, -3, 100.0)] == ["0", "0.175", "12346", "2.3e-10", "1e9", "-3", "100"]


# ---- series of network logs ---------------------------------------------------------------------


def test_completions_of_a_log_by_interval():
    lines = [{"kind": "completion", "unix_ns": int(t * 1e9), "length_bytes": size} for t, size in ((10.5, 100), (11.5, 300), (11.9, 50))]
    lines += [{"kind": "dropped", "count": 3}, {"kind": "rate", "rate_bps": 1}]
    done, missing = netlogs.completions("\n".join(json.dumps(line) for line in lines))
    assert missing == 3 and [size for _, size in done] == [100, 300, 50]
    speeds = netlogs.by_interval(done, 10.0, 1.0)
    assert speeds == [800, pytest.approx(2800 / 0.9)]
    # The rest of an interval is as long as it is, and counts as a whole one only if it nearly is.
    assert netlogs.whole_intervals([*done[:2], (11.8, 50)], 10.0, 1.0) == [800]
    assert netlogs.whole_intervals([*done, (11.95, 50)], 10.0, 1.0) == [800, pytest.approx(3200 / 0.95)]
    assert netlogs.whole_intervals(done[:1], 10.0, 1.0) == [pytest.approx(1600)]
    assert netlogs.by_interval([], 0.0, 1.0) == []


# ---- a run that is cut off ----------------------------------------------------------------------


def _count(calls, fail=()):
    def measure(setting):
        calls.append(setting["n"])
        if len(calls) in fail:
            raise KeyboardInterrupt
        return {"goodput_gbps": float(len(calls))}

    return measure


def test_a_run_that_is_cut_off_goes_on_with_what_it_had(tmp_path):
    path, settings, first, second = tmp_path / "x.kept", [{"n": 1}, {"n": 2}], [], []
    run = {"name": "x", "version": "1"}
    with pytest.raises(KeyboardInterrupt):
        Bench(repeats=3, say=lambda _text: None, kept=Kept(path, run, False)).interleave(settings, _count(first, fail={4}), lambda _each: None)
    kept = Kept(path, run, True)
    assert kept.count() == 3
    samples = Bench(repeats=3, say=lambda _text: None, kept=kept).interleave(settings, _count(second), lambda _each: None)
    assert [len(each) for each in samples] == [3, 3] and len(second) == 3
    assert samples[0][0] == {"goodput_gbps": 1.0}


def test_what_another_run_had_measured_is_not_taken_over(tmp_path):
    path = tmp_path / "x.kept"
    Kept(path, {"version": "1"}, False).add(0, "n=1", {"goodput_gbps": 1.0})
    assert Kept(path, {"version": "1"}, True).count() == 1
    with open(path, "a") as file:
        file.write('[0, "n=1", {"good')
    assert Kept(path, {"version": "1"}, True).count() == 1
    assert Kept(path, {"version": "2"}, True).count() == 0
    assert Kept(path, {"version": "1"}, True).count() == 0


def test_an_experiment_that_fails_stops_no_other_and_is_shown(tmp_path, monkeypatch):
    script = tmp_path / "main.py"
    script.write_text("import json, sys\n"
                      "if sys.argv[1] == 'mtu': sys.exit('lab: no room')\n"
                      "result = {'experiment': sys.argv[1], 'version': 'v'}\n"
                      "open(sys.argv[sys.argv.index('--json') + 1], 'w').write(json.dumps(result))\n")  # fmt: skip
    monkeypatch.setattr(results, "_MAIN", script)
    said, folder = [], tmp_path / "results"
    assert results.run(["mtu", "lanes"], "v", True, said.append, folder) == 1
    assert results.failures(folder)["mtu"]["error"] == "lab: no room" and set(results.load(folder)) == {"lanes"}
    assert results.run(["lanes"], "v", True, said.append, folder) == 0 and said[-1] == "lanes: stands"
    assert results.out_of_date(results.load(folder)["lanes"], "v", False) == "quick"
    assert results.out_of_date(results.load(folder)["lanes"], "w", True) == "of v"


def test_a_commit_of_documents_makes_no_result_older(tmp_path, monkeypatch):
    def git(*words):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True, capture_output=True,
                              text=True).stdout.strip()  # fmt: skip

    def commit(name):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
        git("add", "-A")
        git("commit", "-q", "-m", name)
        return f"sluice 0.1.0 {git('rev-parse', '--short=12', 'HEAD')}"

    monkeypatch.setattr(results, "REPOSITORY", tmp_path)
    git("init", "-q")
    first, second, third = commit("perf/a.py"), commit("docs/papers.svg"), commit("perf/b.py")
    assert results.same_code(first, second) and not results.same_code(second, third)
    assert results.same_code(third + "+", third + "+") and not results.same_code(third + "+", third)
    assert not results.same_code("sluice 0.1.0 0123456789ab", third)


def test_a_run_that_is_told_to_end_ends_its_experiment_first(tmp_path):
    """The experiment gets the time to stop its nodes."""
    ended = tmp_path / "ended"
    script = ("import pathlib, signal, sys, time\n"
              f"signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), pathlib.Path({str(ended)!r}).touch(), sys.exit(1)))\n"
              f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
              "time.sleep(600)\n")  # fmt: skip
    runner = ("import pathlib, sys\n"
              f"sys.path[:0] = {sys.path!r}\n"
              "from harness.system import exit_on_signals\n"
              "from lab.seeds import results\n"
              "exit_on_signals()\n"
              f"results._status([sys.executable, '-c', {script!r}], {str(tmp_path / 'log')!r})\n")  # fmt: skip
    process = subprocess.Popen([sys.executable, "-c", runner])
    wait_until((tmp_path / "ready").exists, 60, "the experiment runs")
    process.terminate()
    process.wait(120)
    assert ended.exists()


def test_wrong_use_is_named(tmp_path):
    with pytest.raises(LabError, match="--quick: only with --run") as error:
        command.arguments(["--quick"])
    assert error.value.code == USAGE
    with pytest.raises(LabError, match="neither a page"):
        command.write(tmp_path / "page.pdf", None, [], {})


def test_cells_and_panels_of_what_was_not_measured():
    about = {"id": "x-figure-1", "paper": "X", "label": "Figure 1", "title": "t"}
    each = drawing.Drawn(about, types.SimpleNamespace(experiment="x", missing=""), Table(["a"], [["1"]]), None, Judged("not run", "r"))
    assert "not run" in page.panels(each)
    assert json.dumps(tracing._exhibit(each))
