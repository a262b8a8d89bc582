#!/usr/bin/python3 -I
"""Staging for jobs of Slurm by Sluice: what burst_buffer.lua, and prolog and epilog of slurmctld, run.

  stage.py setup JOB UID SCRIPT      read the job's directives, and keep what is to be done
  stage.py begin in|out JOB          begin the sessions that are not begun yet
  stage.py run in|out JOB            the same, and wait until all have succeeded
  stage.py test in|out JOB           0: all have succeeded; 75: not yet
  stage.py teardown JOB              cancel and forget, unless Slurm will run the job (again)
  stage.py guard JOB                 cancel and forget, should Slurm cancel the job before it begins
  stage.py status JOB                how its sessions stand
  stage.py prolog, stage.py epilog   all of it where there is no burst buffer; the job is $SLURM_JOB_ID

It ends with 0 only if every session succeeded. An error is one line: "sluice: ...". docs/SLURM.md tells the rest.
"""
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import directives  # noqa: E402
from directives import Problem  # noqa: E402
from staging import Configuration, Job, NotYet, scontrol  # noqa: E402

BUSY = 75
_GUARD_S = 30
# Slurm keeps or starts such a job: a restart of slurmctld, or a requeue, is no reason to cancel anything.
_TO_COME = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "SUSPENDED")
_RUNS = ("RUNNING", "COMPLETING", "COMPLETED", "STAGE_OUT")


def setup(configuration, number, uid, script):
    text = pathlib.Path(script).read_text(errors="surrogateescape")
    Job(configuration, number).keep(int(uid), text)


def begin(configuration, way, number):
    job = Job(configuration, number)
    if way == "in" and job.known():
        watch(number)
    job.begin(way)


def run(configuration, way, number):
    begin(configuration, way, number)
    Job(configuration, number).wait(way)


def test(configuration, way, number):
    job = Job(configuration, number)
    job.begin(way)  # what a slurmctld that was killed had not begun
    job.test(way)


def teardown(configuration, number):
    job = Job(configuration, number)
    if not job.known():
        return
    if job_state(number) not in _TO_COME:
        job.cancel()
    elif not job.started():
        watch(number)  # this host may have been restarted too


def watch(number):
    """Starts the guard, in a session of its own: slurmctld ends what it started with its whole group."""
    subprocess.Popen([sys.executable, "-I", __file__, "guard", number], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip


def guard(configuration, number):
    """Slurm 22.05 may end its own teardown by the signal that ends the stage-in of a cancelled job, and calls none for one that is
    cancelled after a restart of slurmctld and before it is staged in again."""
    job, pause_s = Job(configuration, number), 1
    with job.only_guard() as alone:
        while alone and job.known() and not job.started():
            with contextlib.suppress(Problem):  # slurmctld, or sluice-control, is away: later
                state = job_state(number)
                if state not in (*_TO_COME, *_RUNS) and not job.started():
                    job.cancel()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _GUARD_S)


def job_state(number):
    """As `scontrol` says; empty: Slurm knows no such job."""
    said = scontrol("-o", "show", "job", number)
    if said.returncode != 0:
        if "Invalid job id" in said.stderr:
            return ""
        raise Problem(f"scontrol show job {number}: {said.stderr.strip()}")
    # Of an array, each task that has begun has a line.
    line = next((line for line in said.stdout.splitlines() if line.startswith(f"JobId={number} ")), "")
    return next((word[len("JobState=") :] for word in line.split() if word.startswith("JobState=")), "")


def script_of(number):
    """Empty: it has none, as one of salloc. scontrol of 22.05 ends with 0 in any case."""
    said = scontrol("write", "batch_script", number, "-")
    if not said.stdout and "Job script not specified" not in said.stderr:
        raise Problem(f"scontrol write batch_script {number}: {said.stderr.strip() or 'it said nothing'}")
    return said.stdout


def status(configuration, number):
    print("; ".join(Job(configuration, number).says()))


def prolog(configuration):
    """PrologSlurmctld. What fails is held, with the reason as its comment: Slurm would begin it again and again."""
    number = os.environ["SLURM_JOB_ID"]
    script = script_of(number)
    if "#SLUICE" not in script:
        return
    try:
        if not directives.parse(script):
            return
        Job(configuration, number).keep(int(os.environ["SLURM_JOB_UID"]), script)
        run(configuration, "in", number)
        Job(configuration, number).set_started()
    except Problem as problem:
        scontrol("update", f"JobId={number}", f"AdminComment=sluice: {problem}")
        scontrol("requeuehold", number)
        raise


def epilog(configuration):
    """EpilogSlurmctld: stages out what a job has left whose script ended with 0."""
    number = os.environ["SLURM_JOB_ID"]
    job = Job(configuration, number)
    if not job.known():
        return
    try:
        # Of one that is requeued, nothing goes out.
        if os.environ.get("SLURM_JOB_EXIT_CODE", "0") == "0" and job_state(number) not in _TO_COME:
            run(configuration, "out", number)
    except Problem as problem:
        scontrol("update", f"JobId={number}", f"AdminComment=sluice: {problem}")
        raise
    teardown(configuration, number)


_COMMANDS = {"setup": (setup, 3), "begin": (begin, 2), "run": (run, 2), "test": (test, 2), "teardown": (teardown, 1),
             "guard": (guard, 1), "status": (status, 1), "prolog": (prolog, 0), "epilog": (epilog, 0)}  # fmt: skip


def main(words):
    # slurmctld blocks signals, and what it starts would not end by them.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    command, count = _COMMANDS.get(words[0] if words else "", (None, 0))
    if command is None or len(words) != count + 1:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        command(Configuration(), *words[1:])
    except NotYet:
        return BUSY
    except Problem as problem:
        print(f"sluice: {problem}", file=sys.stderr)
        return 1
    except (OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
        print(f"sluice: {words[0]}: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
