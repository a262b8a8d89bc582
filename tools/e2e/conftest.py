# Fixtures of the end-to-end tests: real processes, real files, and what must be given back afterwards.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import HarnessError, Pair, find_binaries  # noqa: E402
from transfers import log_tails, temporary_files  # noqa: E402

# Little more than the extents of one worker: whoever starts clears all of it, hundreds of times in a run of all tests.
_MEMORY_MIB = 144


def pytest_configure(config):
    # Whoever ends us with SIGTERM: unwind, so that nodes, namespaces and hugepages go.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=1))
    try:
        find_binaries()
    except HarnessError as error:
        pytest.exit(str(error), returncode=1)


def pytest_sessionfinish(session, exitstatus):
    """A file whose every test was skipped counts as skipped for ctest too (SKIP_RETURN_CODE 5)."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    ran = sum(len(reporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "xfailed"))
    if exitstatus == 0 and ran == 0:
        session.exitstatus = 5


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the ends of the daemons' logs."""
    report = (yield).get_result()
    pair = item.funcargs.get("pair") if hasattr(item, "funcargs") else None
    if report.failed and isinstance(pair, Pair):
        report.sections.append(("daemon logs", log_tails(pair)))


@pytest.fixture(scope="module")
def make_pair():
    """make_pair(...) starts a pair that lives until the module's end, and must end well: no daemon gone
    meanwhile, none that has to be killed, no temporary file left, and no call that its sandbox did not allow."""
    pairs, started = [], []

    def make(prepare=None, **options):
        pair = Pair(**{"memory_mib": _MEMORY_MIB, **options})
        pairs.append(pair)
        pair.__enter__()
        if prepare:
            prepare(pair)
        pair.start()
        started.append(pair)
        return pair

    yield make
    problems = []
    for pair in pairs:
        if pair in started:
            for node in pair.nodes:
                for daemon in (node.control, node.dataplane):
                    status = daemon.stop()
                    if status != 0:
                        problems.append(f"{daemon.name}: status {status}\n{daemon.log_tail()}")
                    # A call that is missing from its list (dataplane/base/sandbox/profiles.cc).
                    problems += [f"{daemon.name}: {line}" for line in daemon.log_lines("the sandbox did not allow")]
                problems += [f"left behind: {path}" for path in temporary_files(node)]
        pair.__exit__(None, None, None)
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="module")
def joined():
    from ordered import in_company

    with in_company() as one:
        yield one


@pytest.fixture
def company(joined):
    """A node and three strangers that it trusts; nothing is stored by what the test does."""
    from ordered import nothing_stored

    with nothing_stored(joined):
        yield joined
