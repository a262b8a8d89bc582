# `./dev bench --baseline`: medians of five repetitions, and their ratio to those of baseline.json.
#
# It prints and never judges: the baseline is of one machine on one day. --write makes a new one.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import subprocess
import sys

BASELINE = pathlib.Path(__file__).with_name("baseline.json")
REPETITIONS = 5
MIN_TIME_S = 0.1


def measure(program, arguments):
    """{"cpu": ..., "version": ..., "median_ns": {name: CPU time of an iteration; of some, real time}}"""
    command = [program, f"--benchmark_repetitions={REPETITIONS}", f"--benchmark_min_time={MIN_TIME_S}",
               "--benchmark_report_aggregates_only=true", "--benchmark_format=json", *arguments]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"bench: {program}: exit {done.returncode}; its message stands above")
    report = json.loads(done.stdout)
    medians = {}
    for row in report["benchmarks"]:
        if row.get("aggregate_name") == "median":
            time = "real_time" if "/real_time" in row["run_name"] else "cpu_time"
            medians[row["run_name"]] = float(f"{row[time]:.4g}")
    context = report["context"]
    return {"cpu": context["cpu"], "version": context["version"], "median_ns": medians}


def compare(now, then):
    print(f"baseline: {then['cpu']}, version {then['version']}; now: {now['cpu']}, version {now['version']}")
    print(f"{'benchmark':<52} {'baseline ns':>12} {'now ns':>12} {'now/baseline':>12}")
    for name, now_ns in now["median_ns"].items():
        then_ns = then["median_ns"].get(name)
        if then_ns is None:
            print(f"{name:<52} {'new':>12} {now_ns:>12.2f}")
        else:
            print(f"{name:<52} {then_ns:>12.2f} {now_ns:>12.2f} {now_ns / then_ns:>12.2f}")


def main():
    parser = argparse.ArgumentParser(prog="./dev bench --baseline")
    parser.add_argument("program", help="path of sluice-bench")
    parser.add_argument("--write", action="store_true", help="write baseline.json instead of comparing")
    options, arguments = parser.parse_known_args()
    now = measure(options.program, arguments)
    if options.write:
        BASELINE.write_text(json.dumps(now, indent=1) + "\n")
        print(f"wrote {BASELINE}")
    else:
        compare(now, json.loads(BASELINE.read_text()))


if __name__ == "__main__":
    main()
