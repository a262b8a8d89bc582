# Who borrows hugepages, who keeps them for the next, and what becomes of those of the dead: on a pool that is a file.
# SPDX-License-Identifier: Apache-2.0
import json
import multiprocessing
import os

import pytest

from . import hugepages
from .hugepages import Hugepages, kept_hugepages


@pytest.fixture
def pool(tmp_path, monkeypatch):
    (tmp_path / "nr_hugepages").write_text("5")
    monkeypatch.setattr(hugepages, "_FOLDER", tmp_path)
    monkeypatch.setattr(hugepages, "_LEDGER", tmp_path / "ledger")
    monkeypatch.setattr(hugepages, "is_root", lambda: True)
    return lambda: int((tmp_path / "nr_hugepages").read_text())


def of_another(work, *arguments):
    """What another process does, which then is dead."""
    other = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    other.start()
    other.join()
    assert other.exitcode == 0


def test_a_loan_is_given_back(pool):
    with Hugepages(20) as first, Hugepages(7) as second:
        assert first.available and second.available
        assert pool() == 5 + 10 + 4
    assert pool() == 5
    assert not hugepages._LEDGER.exists()


def test_what_is_kept_is_lent_again_and_goes_with_the_keeper(pool):
    with kept_hugepages():
        with Hugepages(20):
            assert pool() == 15
        assert pool() == 15, "kept for the next"
        with Hugepages(10), Hugepages(20):
            assert pool() == 5 + 5 + 10, "five were there, of the second five were"
        assert pool() == 20
        with kept_hugepages():
            pass
        assert pool() == 20, "a second keeper keeps nothing, and ends nothing"
    assert pool() == 5
    assert not hugepages._LEDGER.exists()


def test_a_borrower_may_outlive_the_keeper(pool):
    loan = Hugepages(20)
    with kept_hugepages():
        loan.__enter__()
    assert pool() == 15
    loan.__exit__()
    assert pool() == 5


def test_no_more_is_kept_than_others_can_spare(pool, monkeypatch):
    monkeypatch.setattr(hugepages, "_kept_most", lambda: 3)
    with kept_hugepages():
        with Hugepages(20):
            pass
        assert pool() == 8
    assert pool() == 5


def test_the_dead_leave_nothing(pool):
    of_another(lambda: Hugepages(20).__enter__())
    assert pool() == 15
    with Hugepages(2):
        assert pool() == 6
    hugepages._LEDGER.write_text("")

    def dies_keeping():
        keeping = kept_hugepages()
        keeping.__enter__()
        with Hugepages(20):
            pass
        os._exit(0)

    of_another(dies_keeping)
    assert pool() == 15
    assert json.loads(hugepages._LEDGER.read_text())["kept"] == 10
    with Hugepages(2):
        assert pool() == 6
    assert pool() == 5


def test_where_the_kernel_gives_too_few_none_is_borrowed(pool, monkeypatch):
    monkeypatch.setattr(hugepages, "_resize", lambda difference: 0)
    with Hugepages(20) as pages:
        assert not pages.available and "0 of 10" in pages.reason
    assert not hugepages._LEDGER.exists()
    monkeypatch.setattr(hugepages, "is_root", lambda: False)
    with kept_hugepages(), Hugepages(20) as pages:
        assert pages.reason == "not root"
    assert os.listdir(hugepages._FOLDER) == ["nr_hugepages"]
