# Borrows 2 MiB hugepages from the kernel for a while and gives back exactly what it took.
#
# The count is changed by a difference, under a lock, so that two harnesses at once do not undo each
# other. Each loan is noted with the borrower's pid: what a killed harness left is given back by the
# next one.
# SPDX-License-Identifier: Apache-2.0
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
        if not is_root():
            self.reason = "not root"
        elif not _FOLDER.is_dir():
            self.reason = "the kernel has no 2 MiB hugepages"
        else:
            self._change(+1)
        return self

    def __exit__(self, *_error):
        if self._borrowed:
            self._change(-1)

    def _change(self, direction):
        with _open_locked() as ledger:
            ledger.seek(0)
            text = ledger.read()
            loans = json.loads(text) if text else {}
            for pid in [pid for pid in loans if not _alive(pid)]:
                self._resize(-loans.pop(pid))
            mine = str(os.getpid())
            if direction > 0:
                got = self._resize(self._wanted)
                if got < self._wanted:
                    self._resize(-got)
                    self.reason = f"the kernel gave {got} of {self._wanted} hugepages; free some memory"
                else:
                    self._borrowed = got
                    loans[mine] = loans.get(mine, 0) + got
            else:
                self._resize(-self._borrowed)
                loans[mine] = loans.get(mine, 0) - self._borrowed
                self._borrowed = 0
                if loans[mine] <= 0:
                    del loans[mine]
            ledger.seek(0)
            ledger.truncate()
            if loans:
                json.dump(loans, ledger)
            else:
                _LEDGER.unlink()

    @staticmethod
    def _resize(difference):
        """Asks for a change of the pool; returns what really was added."""
        before = _read("nr_hugepages")
        (_FOLDER / "nr_hugepages").write_text(str(max(0, before + difference)))
        return _read("nr_hugepages") - before
