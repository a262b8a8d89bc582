# Borrows 2 MiB hugepages from the kernel for a while and gives back exactly what it took.
#
# The count is changed by a difference, under a lock, so that two harnesses at once do not undo each
# other. Each loan is noted with the borrower's pid: what a killed harness left is given back by the
# next one.
#
# While a keeper runs (keep_hugepages.py), what is given back stays for the next borrower. A virtual machine
# has to ask its host for pages that the kernel had let go of: a dataplane with such pages starts in 0.7 s of
# a core, and in 0.1 s with pages that were in use before.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import json
import os
import pathlib

from .system import is_root

_FOLDER = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
_LEDGER = pathlib.Path("/run/lock/sluice-hugepages")
_PAGE_MIB = 2


def _read(name):
    return int((_FOLDER / name).read_text())


def free_mib():
    """Hugepage memory that nobody uses or has reserved; 0 where the kernel has none."""
    try:
        return (_read("free_hugepages") - _read("resv_hugepages")) * _PAGE_MIB
    except OSError:
        return 0


def _alive(pid):
    return os.path.exists(f"/proc/{pid}")


def _open_locked():
    """The ledger, locked. It is removed when empty, so the lock may be on a file that is gone: again."""
    _LEDGER.parent.mkdir(parents=True, exist_ok=True)
    while True:
        ledger = open(_LEDGER, "a+", encoding="ascii")
        fcntl.flock(ledger, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(ledger.fileno()), os.stat(_LEDGER)):
                return ledger
        except FileNotFoundError:
            pass
        ledger.close()


class _Book:
    """Who borrowed how many pages, and how many are kept for the next: the ledger's text, while it is locked."""

    def __init__(self, text):
        known = json.loads(text) if text else {}
        self.loans, self.keeper, self.kept = known.get("loans", {}), known.get("keeper"), known.get("kept", 0)

    def text(self):
        known = {"loans": self.loans, "keeper": self.keeper, "kept": self.kept}
        return json.dumps(known) if self.loans or self.keeper else ""

    def forget_dead(self):
        if self.keeper and not _alive(self.keeper):
            self.end_keeping()
        for pid in [pid for pid in self.loans if not _alive(pid)]:
            _resize(-self.loans.pop(pid))

    def end_keeping(self):
        _resize(-self.kept)
        self.keeper, self.kept = None, 0

    def borrow(self, pages):
        """How many there are: all of them, or fewer and then none is borrowed."""
        kept = min(self.kept, pages)
        got = _resize(pages - kept)
        if kept + got < pages:
            _resize(-got)
            return kept + got
        self.kept -= kept
        mine = str(os.getpid())
        self.loans[mine] = self.loans.get(mine, 0) + pages
        return pages

    def give_back(self, pages):
        mine = str(os.getpid())
        self.loans[mine] = self.loans.get(mine, 0) - pages
        if self.loans[mine] <= 0:
            del self.loans[mine]
        keeps = min(pages, max(0, _kept_most() - self.kept)) if self.keeper else 0
        self.kept += keeps
        _resize(keeps - pages)


@contextlib.contextmanager
def _book():
    with _open_locked() as ledger:
        ledger.seek(0)
        book = _Book(ledger.read())
        book.forget_dead()
        yield book
        ledger.seek(0)
        ledger.truncate()
        text = book.text()
        ledger.write(text)
        if not text:
            _LEDGER.unlink()


def _resize(difference):
    """Asks for a change of the pool; returns what really was added."""
    if difference == 0:
        return 0
    before = _read("nr_hugepages")
    (_FOLDER / "nr_hugepages").write_text(str(max(0, before + difference)))
    return _read("nr_hugepages") - before


def _kept_most():
    """An eighth of the memory: others need some."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8 // (_PAGE_MIB << 20)


def _why_none():
    if not is_root():
        return "not root"
    return None if _FOLDER.is_dir() else "the kernel has no 2 MiB hugepages"


class Hugepages:
    """`with Hugepages(mib) as pages:`; pages.reason is None if they are there, else why not."""

    def __init__(self, mib):
        self._wanted = (mib + _PAGE_MIB - 1) // _PAGE_MIB
        self._borrowed = 0
        self.reason = None

    @property
    def available(self):
        return self.reason is None

    def __enter__(self):
        self.reason = _why_none()
        if self.reason:
            return self
        with _book() as book:
            got = book.borrow(self._wanted)
        if got < self._wanted:
            self.reason = f"the kernel gave {got} of {self._wanted} hugepages; free some memory"
        else:
            self._borrowed = got
        return self

    def __exit__(self, *_error):
        if self._borrowed:
            with _book() as book:
                book.give_back(self._borrowed)
            self._borrowed = 0


@contextlib.contextmanager
def kept_hugepages():
    """What others give back meanwhile is kept for the next of them. One keeper at a time: a second keeps nothing."""
    if _why_none():
        yield
        return
    with _book() as book:
        first = book.keeper is None
        book.keeper = book.keeper or os.getpid()
    try:
        yield
    finally:
        if first:
            with _book() as book:
                book.end_keeping()
