# The command: its errors, its exit codes, the object that it writes, the report.
# SPDX-License-Identifier: Apache-2.0
import json
import types

import pytest
from lab import experiments, main, report
from lab.errors import MISSING, USAGE, LabError
from lab.figures import row

RESULT_KEYS = {"experiment", "version", "machine", "rows", "summary"}


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs main with these words: (exit status, stdout, stderr)."""

    def call(*words):
        monkeypatch.setattr(main, "exit_on_signals", lambda: None)
        monkeypatch.setattr("sys.argv", ["lab", *map(str, words)])
        try:
            status = main.main()
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def stub(monkeypatch, tmp_path):
    """`lanes` with an outcome of its own, and programs that are not run."""
    rows = [row({"lanes": lanes}, [{"goodput_gbps": float(lanes), "loss": 0.0}]) for lanes in (1, 8)]
    outcome = {"rows": rows, "summary": {"ratio_8_to_1": 8.0, "loss_8": 0.0}}
    plots = experiments.load("lanes").plots
    fake = types.SimpleNamespace(HELP="stub", REAL=True, PACKAGES=(), run=lambda _bench: outcome, plots=plots)
    monkeypatch.setattr(main.experiments, "load", lambda _name: fake)
    monkeypatch.setattr(main, "programs", lambda: tmp_path)
    return outcome


def test_list_names_every_experiment(command):
    status, out, _ = command("list")
    assert status == 0 and [line.split()[0] for line in out.splitlines()] == list(experiments.NAMES)


@pytest.mark.parametrize(("words", "naming"), [
    (("nothing",), "nothing: no such experiment"),
    (("lanes", "--node", "/a"), "--node: twice"),
    (("disk", "--node", "/a", "--node", "b"), "disk needs nodes of its own"),
    (("lanes", "--loss", "1"), "--loss: only"),
    (("peers", "--loss", "100"), "--loss 100"),
    (("lanes", "--budget", "20m"), "--budget: lanes does not take it"),
    (("lanes", "somewhere"), "only `report` takes a folder"),
])  # fmt: skip
def test_wrong_use_is_one_line_and_2(command, words, naming):
    status, _, err = command(*words)
    assert status == USAGE and len(err.splitlines()) == 1 and naming in err


def test_programs_that_are_not_built_are_3(command, monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_BIN", str(tmp_path))
    status, _, err = command("lanes", "--no-plots")
    assert status == MISSING and "not built" in err


def test_a_result_is_one_object_with_the_promised_keys(command, stub, tmp_path):
    path = tmp_path / "deep" / "out.json"
    status, out, err = command("lanes", "--quick", "--no-plots", "--json", path)
    assert status == 0, err
    result = json.loads(path.read_text())
    assert set(result) >= RESULT_KEYS
    assert result["experiment"] == "lanes" and result["repeats"] == 3
    assert result["machine"]["cpus"] >= 1 and result["machine"]["kernel"]
    assert json.loads(out) == result["summary"] == stub["summary"]


def test_plots_are_files(command, stub, tmp_path):
    pytest.importorskip("matplotlib")
    status, _, err = command("lanes", "--json", tmp_path / "a.json", "--plots", tmp_path / "plots")
    assert status == 0, err
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"lanes-goodput.png", "lanes-cpu.png"}


# ---- the report ---------------------------------------------------------------------------------


def result_of(name, rows, summary):
    return {"experiment": name, "version": "1", "machine": {"cpu": "<cpu>"}, "rows": rows, "summary": summary}


def test_the_report_is_one_page_without_other_files(tmp_path):
    pytest.importorskip("matplotlib")
    lanes = [row({"lanes": lanes}, [{"goodput_gbps": float(lanes)}]) for lanes in (1, 2)]
    wire = [row({"setting": "sluice"}, [{"goodput_gbps": 5.0}]), row({"setting": "raw"}, [{"error": "not <built>"}])]
    (tmp_path / "lanes.json").write_text(json.dumps(result_of("lanes", lanes, {"ratio_8_to_1": None})))
    (tmp_path / "wire.json").write_text(json.dumps(result_of("wire", wire, {"goodput_gbps": 5.0})))
    (tmp_path / "other.json").write_text("{}")
    page = report.write(tmp_path, tmp_path / "report.html").read_text()
    assert page.index('id="wire"') < page.index('id="lanes"')
    assert page.count('src="data:image/png;base64,') == 3
    assert "not &lt;built&gt;" in page and "&lt;cpu&gt;" in page and "<built>" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_report_of_nothing_is_an_error(tmp_path):
    with pytest.raises(LabError, match="no results"):
        report.results(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(LabError, match="bad.json: no JSON"):
        report.results(tmp_path)


def test_every_plot_can_be_drawn_of_rows_with_errors(tmp_path):
    """Also when nothing worked: a report shows what is there."""
    pytest.importorskip("matplotlib")
    from lab.plots import images

    keys = {"setting": "x", "peer": "x", "storage": "tmpfs", "congestion_control": None, "counts": False,
            "crc": "crc64", "chunk_size": 512, "chunk_bytes": 512, "datagram_bytes": 600, "size_bytes": 1, "lanes": 1, "cores": 1,
            "what": "node", "policy": "bucket", "target_gbps": 1, "in_slope": False, "case": "flows", "link": "1G",
            "rtt_ms": 20, "loss_percent": 1.0, "capacity_gbps": 1.0, "sessions": 4, "mode": "adaptive", "tcp_flows": 1,
            "buffer_ms": 20, "size_mb": 10, "tree": "small", "flood_percent": 25, "channel": "sluice-wire",
            "fec": "off", "in_a_row": 1, "figure": 1, "compress": "off", "data": "text"}  # fmt: skip
    for name in experiments.NAMES:
        broken = row(keys, [{"error": "x"}])
        assert images(result_of(name, [broken], {})), name
