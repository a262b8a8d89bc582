# What an experiment is run with: its options, its nodes, and rounds in which the settings take turns.
# SPDX-License-Identifier: Apache-2.0
import itertools
import sys
import time

from harness import HarnessError

from .errors import LabError
from .figures import row
from .nodes import OwnNodes, RealNodes

REPEATS, REPEATS_QUICK = 5, 3


class Budget:
    """So much time, of which the next run takes as long as the longest of its setting did.

    within: how far the interval of a ratio may reach from its median, as a part of it."""

    def __init__(self, seconds, within, clock=time.monotonic):
        self.within = within
        self._clock = clock
        self._end = clock() + seconds

    def left_s(self):
        return self._end - self._clock()

    def timed(self, action):
        began = self._clock()
        result = action()
        return result, self._clock() - began


class Bench:
    """budget: rounds go on until an experiment has enough, or no time is left; without one there are `repeats`."""

    def __init__(self, quick=False, repeats=None, nodes=None, loss_percent=0.0, only=(), say=None, kept=None, budget=None):
        self.quick = quick
        self.only = [text.split() for text in only]
        self._asked_repeats = repeats
        self.repeats = self.repeats_or(REPEATS_QUICK, REPEATS)
        self.loss_percent = loss_percent
        self._real = nodes
        self._say = say
        self._kept = kept
        self.budget = budget
        self._parts = 0
        self.described = {}

    def pick(self, quick, full):
        return quick if self.quick else full

    def repeats_or(self, quick, full):
        """As often as --repeat says, or else the experiment."""
        return self._asked_repeats or self.pick(quick, full)

    def say(self, text):
        if self._say:
            self._say(text)
        else:
            print(f"lab: {text}", file=sys.stderr, flush=True)

    def nodes(self, **own):
        """The real nodes if there are any, else a pair with these options."""
        return RealNodes(*self._real) if self._real else OwnNodes(**own)

    def describe(self, nodes):
        self.described = nodes.describe()

    @property
    def has_real(self):
        return self._real is not None

    # ---- rounds -----------------------------------------------------------------------------------

    def interleave(self, settings, measure, warm_up=None, rounds=1, repeats=None, enough=None):
        """measure(setting) -> sample, `repeats` (or else the bench's) times `rounds` for each setting, all settings in
        every round; every second round in reverse, so that a slow drift of the machine meets them alike. Before that,
        each once for nothing (warm_up, or measure itself); one that fails there is not tried again. What a run that was
        cut off has measured already (kept.py) is taken over.

        With a budget of time and `enough`: round after round until enough(samples), or no time is left, or as often as
        --repeat says; a setting that had no time at all is an error.

        Returns the samples, a list for each setting in order."""
        if enough and self.budget:
            return self._until(settings, measure, warm_up, enough)
        part, repeats = self._parts, (repeats or self.repeats) * rounds
        self._parts += 1
        samples = [each[:repeats] for each in self._kept_of(part, settings)]
        out = self._warm_up(settings, samples, warm_up or measure, lambda index: len(samples[index]) == repeats)
        for number in range(repeats):
            for index in _order(number, settings):
                if index not in out and len(samples[index]) <= number:
                    self._run(part, settings[index], samples[index], measure, f"round {number + 1} of {repeats}")
        return samples

    def _until(self, settings, measure, warm_up, enough):
        part, longest_s = self._parts, {}
        self._parts += 1
        samples = self._kept_of(part, settings)
        out = self._warm_up(settings, samples, warm_up or measure, lambda index: self.budget.left_s() <= 0)
        # A run that was cut off ended within a round.
        first = min((len(each) for index, each in enumerate(samples) if index not in out), default=0)
        for number in itertools.count(first):
            if len(out) == len(settings) or number == self._asked_repeats or (number >= 1 and enough(samples)):
                break
            for index in _order(number, settings):
                if index in out or len(samples[index]) > number:
                    continue
                if self.budget.left_s() <= longest_s.get(index, 0):
                    self.say("the time is used up")
                    return [each or [{"error": "no time was left for it: give more by --budget"}] for each in samples]
                _none, took_s = self.budget.timed(lambda index=index: self._run(
                    part, settings[index], samples[index], measure, f"round {number + 1}"))  # fmt: skip
                longest_s[index] = max(longest_s.get(index, 0), took_s)
        return samples

    def _kept_of(self, part, settings):
        return [self._kept.of(part, self.name_of(setting)) if self._kept else [] for setting in settings]

    def _warm_up(self, settings, samples, action, not_needed):
        """The settings that cannot be measured; each has its error for a sample."""
        out = set()
        for index, setting in enumerate(settings):
            error = self.left_out(setting)
            if not error and not not_needed(index):
                error = self._attempt(action, setting)[1]
            if error:
                out.add(index)
                samples[index].append({"error": error})
                self.say(f"{self.name_of(setting)}: {error}")
        return out

    def _run(self, part, setting, samples, measure, which):
        name = self.name_of(setting)
        sample, error = self._attempt(measure, setting)
        sample = {"error": error} if error else sample
        samples.append(sample)
        if self._kept and not error:
            self._kept.add(part, name, sample)
        self.say(f"{which}: {name}: {error or brief(sample)}")

    def left_out(self, setting):
        """Why it is; None: it is not. A word of --only is key=value, or some values, of which the setting has one."""
        words = self.name_of(setting).split()
        values = [str(value) for value in setting.values()]

        def has(word):
            return word in words if "=" in word else any(value in values for value in word.split(","))

        if not self.only or any(all(has(word) for word in wanted) for wanted in self.only):
            return None
        return "left out: it has not the words of --only"

    @staticmethod
    def _attempt(measure, setting):
        try:
            return measure(setting), None
        except HarnessError as error:
            return None, str(error).splitlines()[0]

    @staticmethod
    def name_of(setting):
        return " ".join(f"{key}={value}" for key, value in setting.items())

    def rows(self, settings, samples):
        return [row(setting, runs) for setting, runs in zip(settings, samples)]

    def must_have_rows(self, rows):
        """An experiment of which nothing worked is an error, not a result."""
        if rows and all("error" in each for each in rows):
            raise LabError(f"no setting worked; the first says: {rows[0]['error']}")
        return rows


def _order(number, settings):
    return range(len(settings)) if number % 2 == 0 else reversed(range(len(settings)))


def brief(sample):
    speed = sample.get("goodput_gbps")
    return f"{speed:.3g} Gbit/s" if speed is not None else "done"


def bytes_for(sample, seconds, step=1 << 20):
    """How many bytes take about so long, by what a first run showed; a multiple of `step`."""
    return max(step, int(sample["goodput_gbps"] * 1e9 / 8 * seconds) // step * step)
