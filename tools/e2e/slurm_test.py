# Jobs of a real Slurm whose files Sluice stages in and out: the bytes are the same, nothing that failed is called a success, and
# nothing is moved twice, whatever is killed or cancelled meanwhile.
# SPDX-License-Identifier: Apache-2.0
import os
import pwd
import signal

import pytest
from harness import Group, HarnessError, Slurm, find_binaries, group_missing, slurm_missing, wait_until
from harness.system import REPOSITORY, random_file, same_bytes
from harness.users import UsersHelper
from transfers import CANCELLED, ENDED, EXISTS, MIB, SOURCE, nothing_temporary

_reason = group_missing() or slurm_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

USER = "nobody"
_TOOLS = REPOSITORY / "tools/slurm"


class Site:
    """Three nodes of Sluice, the first of them on the host of slurmctld and of the slurmd, and a user with a directory there."""

    def __init__(self, group):
        self.group, self.home = group, group["home"]
        group.base.chmod(0o755)
        self.state = group.base / "staging"
        configuration = group.base / "slurm-staging.conf"
        configuration.write_text(f"sluice = {find_binaries()}/sluice\nnode = {self.home.directory}\nstate_dir = {self.state}\n"
                                 "between = slurm\n")  # fmt: skip
        self.environment = {"SLUICE_STAGE": _TOOLS / "stage.py", "SLUICE_STAGE_CONF": configuration}
        self.scratch = group.base / "scratch"
        self.scratch.mkdir()
        os.chown(self.scratch, pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid)
        self.users = UsersHelper(self.home, group.base / "home-users.log")

    def start(self):
        self.group.start()
        self.users.start()

    def begun(self):
        return [session for session in self.home.sessions() if session["direction"] in ("send", "get", "order")]


@pytest.fixture(scope="module")
def site():
    settings = {"port": {"rate": "80M"}}
    of_home = {"control": {"users_group": "nogroup"}}
    with Group(["home", "alpha", "beta"], bytes_needed=1 << 29, of_node={"home": of_home, "alpha": settings}) as group:
        site = Site(group)
        try:
            site.start()
            yield site
        finally:
            site.users.stop()


@pytest.fixture(scope="module")
def slurm(site):
    files = {"burst_buffer.lua": (_TOOLS / "burst_buffer.lua").read_text(), "burst_buffer.conf": "Directive=SLUICE\n"}
    with Slurm(user=USER, group=site.group, files=files, settings={"BurstBufferType": "burst_buffer/lua"},
               environment=site.environment) as cluster:  # fmt: skip
        yield cluster


def script(*lines, directives=()):
    return "\n".join(["#!/bin/bash", "#SBATCH -o /dev/null", *(f"#SLUICE {line}" for line in directives), *lines, ""])


def submitted(slurm, *lines, directives):
    result = slurm.submit(script(*lines, directives=directives))
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def wait_for_job(slurm, number, what, condition, deadline_s=60):
    try:
        def there():
            job = slurm.job(number)
            if job and condition(job):
                return job
            if job and job["JobState"] in ("FAILED", "CANCELLED", "NODE_FAIL"):
                raise HarnessError(f"{what}: it never will")
            return None

        return wait_until(there, deadline_s, what, interval_s=0.3)
    except HarnessError as error:
        raise AssertionError(f"{error}: {slurm.job(number)}\n{slurm.tails()}") from None


def test_a_job_reads_what_was_staged_in_and_its_result_is_staged_out(site, slurm):
    source = random_file(site.group["alpha"].export() / "input", 3 * MIB + 5, seed=1)
    place = site.scratch / "cycle"
    number = submitted(slurm, 'cat "$SLUICE_STAGE_IN_1" > "$SLUICE_STAGE_OUT_1"', directives=[
        f"stage-in alpha:data/input {place}/%u-%j/in mkdir=yes", f"stage-out {place}/%u-%j/out beta:data/result-%j"])  # fmt: skip
    job = wait_for_job(slurm, number, "the job ends", lambda job: job["JobState"] == "COMPLETED")
    assert job["ExitCode"] == "0:0", job
    assert same_bytes(source, place / f"{USER}-{number}" / "in")
    assert (place / f"{USER}-{number}" / "in").owner() == USER
    assert same_bytes(source, site.group["beta"].export() / f"result-{number}")
    assert {session["user"] for session in site.begun()} == {USER}
    wait_until(lambda: not (site.state / number).exists(), 30, "nothing is kept of the job")


def ended_all(site):
    return [session for session in site.begun() if session["state"] not in ENDED]


def moving(site, known):
    """The session that is not among `known`, once bytes of it have arrived."""
    return wait_until(lambda: next((session for session in site.begun() if session["id"] not in known
                                    and session["bytes_done"] > 0), None), 60, "bytes are staged in")  # fmt: skip


def plain(text):
    """Slurm writes a reason with _ for each blank."""
    return text.replace("_", " ")


def held(slurm, number):
    return wait_for_job(slurm, number, "the job is held",
                        lambda job: job["Priority"] == "0" and "sluice" in job.get("Reason", ""))  # fmt: skip


def test_a_source_that_is_not_there_holds_the_job_and_slurm_says_why(site, slurm):
    place = site.scratch / "missing"
    number = submitted(slurm, f"touch {site.scratch}/ran", directives=[f"stage-in alpha:data/none {place}/in mkdir=yes"])
    job = held(slurm, number)
    assert job["JobState"] == "PENDING", job
    for text in (job["Reason"], slurm.must("squeue", "-h", "-j", number, "-o", "%R"), slurm.must("scontrol", "show", "job", number)):
        for word in ("stage-in alpha:data/none", f"exit {SOURCE}", "session "):
            assert word in plain(text), text
    assert not (site.scratch / "ran").exists()
    assert site.begun()[-1]["state"] == "failed"
    assert list(place.iterdir()) == []
    assert "stage-in 1: " in slurm.must("scontrol", "show", "bbstat", number)
    slurm.must("scancel", number, user=USER)
    wait_until(lambda: not (site.state / number).exists(), 30, "nothing is kept of the job")


def test_a_part_that_is_missing_is_no_success(site, slurm):
    random_file(site.group["alpha"].export() / "there", MIB, seed=2)
    names = site.scratch / "names"
    names.write_text("there\nnot-there\n")
    number = submitted(slurm, f"touch {site.scratch}/ran", directives=[
        f"stage-in alpha:data/ {site.scratch}/part/ list={names} mkdir=yes"])  # fmt: skip
    assert "stage-in alpha:data/" in plain(held(slurm, number)["Reason"])
    assert not (site.scratch / "ran").exists()
    slurm.must("scancel", number)


def test_later_slurm_asks_again_and_again_until_all_is_there(site, slurm):
    """What burst_buffer.lua runs where Slurm has test_data_in; Debian's does not."""
    source = random_file(site.group["alpha"].export() / "asked", 8 * MIB, seed=8)
    text = script(directives=[f"stage-in alpha:data/asked {site.scratch}/asked"])
    (site.scratch / "asked.sh").write_text(text)
    number = slurm.must("sbatch", "--parsable", "--hold", "--wrap=true", user=USER).strip()
    environment = [f"{key}={value}" for key, value in site.environment.items()]

    def stage(*words):
        return slurm.call("env", *environment, _TOOLS / "stage.py", *words)

    def ended():
        status = stage("test", "in", number).returncode
        assert status in (0, 75)
        return status == 0

    assert stage("setup", number, pwd.getpwnam(USER).pw_uid, site.scratch / "asked.sh").returncode == 0
    source_node = site.group["alpha"].control.pid
    os.kill(source_node, signal.SIGSTOP)  # nothing comes yet
    try:
        assert stage("begin", "in", number).returncode == 0
        assert not ended()
    finally:
        os.kill(source_node, signal.SIGCONT)
    wait_until(ended, 60, "it is staged in")
    assert same_bytes(source, site.scratch / "asked")
    slurm.must("scancel", number)
    wait_until(lambda: not (site.state / number).exists(), 60, "its guard has seen that")


def test_a_list_names_files_and_two_other_nodes_are_source_and_destination(site, slurm):
    data = site.group["alpha"].export() / "set"
    (data / "deep/er").mkdir(parents=True)
    wanted = ["one", "deep/two", "deep/er/three four"]
    for at, name in enumerate([*wanted, "unwanted"]):
        random_file(data / name, 1000 + at, seed=at)
    names = site.scratch / "list"
    names.write_text("# what is wanted\n" + "".join(f"./{name}\n" for name in wanted))
    place = site.scratch / "listed"
    number = submitted(slurm, f"cp -r {place} {site.scratch}/back", directives=[
        f'stage-in alpha:data/set "{place}/" list={names} mkdir=yes', f"stage-in alpha:data/set beta:data/third-%j list={names} mkdir=yes",
        f"stage-out {site.scratch}/back/one alpha:data/set/one overwrite=yes"])  # fmt: skip
    wait_for_job(slurm, number, "the job ends", lambda job: job["JobState"] == "COMPLETED")
    there = site.group["beta"].export() / f"third-{number}"
    for top in (place, there):
        assert sorted(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()) == sorted(wanted)
        assert all(same_bytes(data / name, top / name) for name in wanted)


def test_a_list_that_its_user_cannot_read_holds_the_job(site, slurm):
    secret = site.scratch / "secret"
    secret.write_text("there\n")
    secret.chmod(0o600)
    os.chown(secret, 0, 0)
    number = submitted(slurm, "true", directives=[f"stage-in alpha:data/ {site.scratch}/x/ list={secret}"])
    reason = plain(held(slurm, number)["Reason"])
    assert f"{secret.name}: user {USER} cannot read it: Permission denied" in reason, reason
    slurm.must("scancel", number)


def test_scancel_in_the_middle_cancels_the_session(site, slurm):
    random_file(site.group["alpha"].export() / "long", 80 * MIB, seed=3)
    known = [session["id"] for session in site.begun()]
    number = submitted(slurm, "true", directives=[f"stage-in alpha:data/long {site.scratch}/cancelled"])
    session = moving(site, known)
    wait_for_job(slurm, number, "Slurm shows it", lambda job: job["BurstBufferState"] == "staging-in")
    slurm.must("scancel", number, user=USER)
    wait_until(lambda: not ended_all(site), 60, "the session has ended")
    end = next(one for one in site.begun() if one["id"] == session["id"])
    assert (end["state"], end["error_code"]) == ("cancelled", CANCELLED)
    wait_for_job(slurm, number, "the job is cancelled", lambda job: job["JobState"] == "CANCELLED")
    wait_until(lambda: not (site.state / number).exists(), 30, "nothing is kept of the job")
    assert not (site.scratch / "cancelled").exists()
    nothing_temporary(*site.group.nodes)


def test_slurmctld_is_killed_in_the_middle_and_nothing_is_moved_twice(site, slurm):
    source = random_file(site.group["alpha"].export() / "restarted", 20 * MIB, seed=4)
    known = [session["id"] for session in site.begun()]
    place = site.scratch / "restarted"
    directives = [f"stage-in alpha:data/restarted {place}", f"stage-out {place}.out beta:data/restarted-out"]
    number = submitted(slurm, f"cat {place} > {place}.out", directives=directives)
    session = moving(site, known)
    # It stays in the middle until Slurm has written down that the job has a burst buffer.
    site.home.must("session", "pause", session["id"])
    slurm.must("sbatch", "--hold", "--wrap=true", user=USER)  # then Slurm saves what it knows of all jobs
    wait_until(lambda: slurm.saved(number, directives[-1]), 60, "slurmctld has saved its state")
    slurm.restart_slurmctld(crash=True)
    wait_for_job(slurm, number, "the job waits again", lambda job: job["BurstBufferState"] in ("pending", "complete"))
    # Slurm lets such a job wait for a minute.
    slurm.must("scontrol", "update", f"JobId={number}", "StartTime=now")
    wait_for_job(slurm, number, "it is staged in again", lambda job: job["BurstBufferState"] == "staging-in")
    site.home.must("session", "continue", session["id"])
    wait_for_job(slurm, number, "the job ends", lambda job: job["JobState"] == "COMPLETED")
    begun = [one for one in site.begun() if one["id"] not in known]
    assert [one["id"] for one in begun if one["direction"] == "get"] == [session["id"]]
    assert [one["state"] for one in begun] == ["succeeded", "succeeded"]
    assert same_bytes(source, place) and same_bytes(source, site.group["beta"].export() / "restarted-out")


def test_scancel_after_a_restart_cancels_the_session_too(site, slurm):
    random_file(site.group["alpha"].export() / "orphan", 40 * MIB, seed=7)
    known = [session["id"] for session in site.begun()]
    number = submitted(slurm, "true", directives=[f"stage-in alpha:data/orphan {site.scratch}/orphan"])
    session = moving(site, known)
    site.home.must("session", "pause", session["id"])
    slurm.restart_slurmctld()
    wait_for_job(slurm, number, "the job waits again", lambda job: job["BurstBufferState"] in ("pending", "complete"))
    assert slurm.job(number)["JobState"] == "PENDING" and [one["state"] for one in ended_all(site)] == ["paused"]
    slurm.must("scancel", number, user=USER)
    wait_until(lambda: not ended_all(site) and not (site.state / number).exists(), 60, "the session has ended")
    assert next(one for one in site.begun() if one["id"] == session["id"])["state"] == "cancelled"


def test_a_stage_out_that_fails_is_told_and_its_dependents_do_not_start(site, slurm):
    taken = site.group["beta"].export() / "taken"
    taken.write_text("of somebody else")
    number = submitted(slurm, f"echo result > {site.scratch}/result", directives=[f"stage-out {site.scratch}/result beta:data/taken"])
    after = slurm.submit(script(f"touch {site.scratch}/after"), f"--dependency=afterok:{number}").stdout.strip()
    job = wait_for_job(slurm, number, "Slurm says why", lambda job: "beta:data/taken" in job.get("Reason", ""))
    assert f"exit {EXISTS}" in plain(job["Reason"]) and "STAGE_OUT" in job["JobState"], job
    assert taken.read_text() == "of somebody else"
    # Whoever has made room lets it be staged out again: a slurmctld that begins does so.
    taken.unlink()
    slurm.restart_slurmctld()
    wait_for_job(slurm, number, "the job is complete", lambda job: job["JobState"] == "COMPLETED")
    assert same_bytes(site.scratch / "result", taken)
    wait_for_job(slurm, after, "its dependent ran", lambda job: job["JobState"] == "COMPLETED")


@pytest.mark.parametrize("directive, says", [
    ("stage-on a:b /c", "unknown directive stage-on"),
    ("stage-in alpha:data/x", "needs SRC and DST"),
    ("stage-in alpha:data/x /y colour=red", "unknown option colour="),
    ("stage-in alpha:data/x /y list=names", "list=names: write an absolute path"),
    ("stage-in alpha:data/x y", "y is neither an absolute path nor NODE:PATH"),
    ("stage-in /x /y", "is at another node"),
])  # fmt: skip
def test_sbatch_refuses_what_is_wrong(slurm, directive, says):
    result = slurm.submit(script("true", directives=[directive]))
    assert result.returncode != 0 and result.stdout == ""
    assert says in result.stderr and "sluice: line 3: " in result.stderr, result.stderr


@pytest.fixture(scope="module")
def plain_slurm(site, slurm):
    """Without a burst buffer: slurmctld runs prolog and epilog, with no environment of ours."""
    words = " ".join(f"{key}={value}" for key, value in site.environment.items())
    files = {name: f"#!/bin/sh\nexec env SLURM_CONF=$(dirname $0)/slurm.conf {words} {_TOOLS}/{name}\n" for name in ("prolog", "epilog")}
    settings = {"PrologSlurmctld": "{base}/prolog", "EpilogSlurmctld": "{base}/epilog"}
    with Slurm(user=USER, group=site.group, at=["home"], files=files, settings=settings) as cluster:
        yield cluster


def test_prolog_and_epilog_stage_where_there_is_no_burst_buffer(site, plain_slurm):
    source = random_file(site.group["alpha"].export() / "prolog", MIB + 1, seed=5)
    place = site.scratch / "prolog"
    number = submitted(plain_slurm, f"cat {place}/in-%j > {place}/out".replace("%j", "$SLURM_JOB_ID"), directives=[
        f"stage-in alpha:data/prolog {place}/in-%j mkdir=yes", f"stage-out {place}/out beta:data/epilog"])  # fmt: skip
    wait_for_job(plain_slurm, number, "the job ends", lambda job: job["JobState"] == "COMPLETED")
    assert same_bytes(source, site.group["beta"].export() / "epilog")
    wait_until(lambda: not (site.state / number).exists(), 30, "nothing is kept of the job")
    wrong = submitted(plain_slurm, f"touch {site.scratch}/ran", directives=[f"stage-in alpha:data/none {place}/none"])
    job = wait_for_job(plain_slurm, wrong, "the job is held",
                       lambda job: (job["JobState"], job["Priority"]) == ("PENDING", "0") and "AdminComment" in job)  # fmt: skip
    assert f"(exit {SOURCE}" in job["AdminComment"], job
    assert not (site.scratch / "ran").exists()
    plain_slurm.must("scancel", wrong)


def test_jobs_that_depend_on_jobs_that_stage(site, plain_slurm):
    source = random_file(site.group["alpha"].export() / "chain", MIB + 2, seed=6)
    place = site.scratch / "chain"
    place.mkdir()
    os.chown(place, pwd.getpwnam(USER).pw_uid, -1)
    (plain_slurm.work / "job.sh").write_text(script(f"cat {place}/in > {place}/out"))
    environment = [f"PATH={find_binaries()}:{os.environ['PATH']}", f"SLUICE_NODE={site.home.directory}",
                   f"SLUICE_STAGES={place}/kept", "SBATCH_OUTPUT=/dev/null"]  # fmt: skip

    def chain(name, to):
        words = [f"alpha:data/{name}", place / "in", plain_slurm.work / "job.sh", place / "out", f"beta:data/{to}"]
        return plain_slurm.must("env", *environment, _TOOLS / "examples/submit.sh", *words, user=USER).split()

    jobs = chain("chain", "chained")
    wait_for_job(plain_slurm, jobs[-1], "the last job ends", lambda job: job["JobState"] == "COMPLETED")
    assert same_bytes(source, site.group["beta"].export() / "chained")
    jobs = chain("none", "never")
    job = wait_for_job(plain_slurm, jobs[0], "the first job ends", lambda job: job["JobState"] == "FAILED")
    assert job["ExitCode"] == f"{SOURCE}:0", job
    for number in jobs[1:]:
        wait_for_job(plain_slurm, number, "the others never begin", lambda job: job["JobState"] == "CANCELLED")
    assert not (site.group["beta"].export() / "never").exists()
