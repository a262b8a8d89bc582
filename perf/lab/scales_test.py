# What `scale` makes of its rows, and how it fills a journal, without any node.
# SPDX-License-Identifier: Apache-2.0
import sqlite3

from lab.experiments import scale


def test_the_summary_is_of_the_largest_case_and_compares_it_with_the_smallest():
    rows = [{"case": "peers", "trust": trust, "peers": peers, "handshake_ms": ms, "rest_ms_per_s": peers / 100}
            for trust, ms in ((scale.PINS, 4.0), (scale.AUTHORITY, 2.0)) for peers in (10, 1000)]  # fmt: skip
    rows[1]["handshake_ms"] = 6.0
    rows += [{"case": "journal", "ended": 1, "start_s": 0.1}, {"case": "journal", "ended": 10_000, "start_s": 0.2}]
    rows += [{"case": "burst", "part": part, "a_ms": ms} for part, ms in ((1, 4.0), (2, 5.0), (3, 6.0))]
    assert scale.summary(rows) == {
        "handshake_ms_pins": 6.0, "grows_handshake_pins": 1.5, "rest_ms_per_s_pins": 10.0,
        "handshake_ms_authority": 2.0, "grows_handshake_authority": 1.0, "rest_ms_per_s_authority": 10.0,
        "journal_start_s": 0.2, "session_ms": 5.0, "grows_session": 1.5, "plan_ns_per_file": None,
    }  # fmt: skip


def test_a_journal_has_so_many_copies_of_its_newest_session(tmp_path):
    path, first = tmp_path / "journal.sqlite", "ab" * 16
    with sqlite3.connect(path) as journal:
        journal.execute("CREATE TABLE session(id TEXT PRIMARY KEY, state INTEGER, started INTEGER, record BLOB, request BLOB)")
        journal.execute("CREATE TABLE file(session TEXT, object INTEGER, record BLOB)")
        journal.execute("CREATE TABLE block(session TEXT, object INTEGER, block INTEGER, content BLOB)")
        journal.execute("INSERT INTO session VALUES(?, 2, 1000, ?, NULL)", (first, b"\n " + first.encode() + b"x"))
        journal.execute("INSERT INTO file VALUES(?, 0, 'name')", (first,))
    for count in (5, 3):
        scale.fill_journal(path, count)
        with sqlite3.connect(path) as journal:
            rows = journal.execute("SELECT id, started, record FROM session ORDER BY started DESC").fetchall()
            files = journal.execute("SELECT count(*) FROM file").fetchone()[0]
        assert len(rows) == files == count
        assert rows[0][:2] == (first, 1000)
        assert all(one.encode() in record for one, _started, record in rows), "each record names its session"
