# Forward error correction between real nodes: over a path that loses frames, lost chunks are made of repair symbols
# and the file arrives identical; where nothing may be coded nothing is.
# SPDX-License-Identifier: Apache-2.0
import pytest
from harness import EmulatedWire, wait_until
from harness.system import same_bytes
from transfers import MIB, USAGE, ended_session, finish, forget, last_session, make_file, pull, push, refused, start_slow

LOSS = 0.05


@pytest.fixture(scope="module")
def emulated(make_pair):
    return make_pair(wire=EmulatedWire(rate="1G"), bytes_needed=1 << 29)


@pytest.fixture
def pair(emulated):
    emulated.wire.set("both", loss={"probability": LOSS})
    yield emulated
    emulated.wire.clear()


@pytest.fixture(params=["rs", "raptorq"])
def code(request, pair):
    """One that this build has: RaptorQ may be left out."""
    if request.param == "raptorq":
        tried = pair.a.sluice("send", make_file(pair.a, 1), "b:data/", "--fec", "raptorq")
        if "built without" in tried.stderr:
            pytest.skip("this build does not have RaptorQ")
    return request.param


def ended(pair):
    """The last session as its source and its destination show it. Pushed files have ended at a first."""
    wait_until(lambda: last_session(pair.b)["state"] == "succeeded", 30, "the session has ended at b")
    return last_session(pair.a), last_session(pair.b)


def test_lost_chunks_are_made_of_repair_symbols(pair, code):
    source = make_file(pair.a, 16 * MIB + 1)
    target = push(pair, source, "--fec", code)
    at_a, at_b = ended(pair)
    assert at_a["fec"] == at_b["fec"] == code
    assert at_a["parity"] > 0 and at_b["decoded_chunks"] > 0
    assert 0 < at_b["parity"] <= at_a["parity"]
    assert pair.b.counters()["rx_false_parity"] == 0
    shown = pair.a.must("session", "show", at_a["id"]).stdout
    assert f"{code}, {at_a['parity']} repair symbols" in shown
    forget(source, target)


def test_who_gets_chooses_for_the_source(pair, code):
    source = make_file(pair.b, 8 * MIB)
    target = pull(pair, source, "--fec", code)
    at_b, at_a = last_session(pair.b), last_session(pair.a)
    assert at_a["fec"] == code and at_b["parity"] > 0 and at_a["decoded_chunks"] > 0
    forget(source, target)


def test_what_was_agreed_upon_outlives_both_controls(pair):
    source = make_file(pair.a, 24 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", "--fec", "rs", rate="60M")
    for node in pair.nodes:
        node.control.kill()
        node.start_control()
    finish(process, 120)
    end = ended_session(pair.a, session)
    assert (end["state"], end["fec"]) == ("succeeded", "rs"), end["error"]
    assert ended(pair)[1]["decoded_chunks"] > 0
    target = pair.b.export() / source.name
    assert same_bytes(source, target)
    forget(source, target)


def test_without_losses_nothing_is_added(pair):
    pair.wire.clear()
    source = make_file(pair.a, 4 * MIB)
    for choice in ("rs", "raptorq", "off"):
        forget(push(pair, source, "--fec", choice, "--overwrite"))
        assert (last_session(pair.a)["fec"], last_session(pair.a)["parity"]) == (choice, 0)
    push(pair, source, "--overwrite")  # which expects a little loss at the end
    assert last_session(pair.a)["fec"] == "auto", "the default"
    forget(source, pair.b.export() / source.name)


def test_into_null_it_is_off_and_says_so(pair):
    source = make_file(pair.a, 4 * MIB)
    pair.a.must("send", source, "b:null:", "--fec", "rs")
    assert (last_session(pair.a)["fec"], last_session(pair.a)["parity"]) == ("off", 0)
    assert pair.a.control.log_lines("fec is off: into null:")
    forget(source)


def test_a_code_that_does_not_exist_is_refused(pair):
    refused(pair.a.sluice("send", make_file(pair.a, 1), "b:data/", "--fec", "turbo"), USAGE, "--fec", "turbo")
