# What an experiment is run with: its options, its nodes, and rounds in which the settings take turns.
# SPDX-License-Identifier: Apache-2.0
import sys

from harness import HarnessError

from .errors import LabError
from .figures import row
from .nodes import OwnNodes, RealNodes

REPEATS, REPEATS_QUICK = 5, 3


class Bench:
    def __init__(self, quick=False, repeats=None, nodes=None, loss_percent=0.0, only=(), say=None, kept=None):
        self.quick = quick
        self.only = [text.split() for text in only]
        self._asked_repeats = repeats
        self.repeats = self.repeats_or(REPEATS_QUICK, REPEATS)
        self.loss_percent = loss_percent
        self._real = nodes
        self._say = say
        self._kept = kept
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

    def interleave(self, settings, measure, warm_up=None, rounds=1, repeats=None):
        """measure(setting) -> sample, `repeats` (or else the bench's) times `rounds` for each setting, all settings in
        every round; every second round in reverse, so that a slow drift of the machine meets them alike. Before that,
        each once for nothing (warm_up, or measure itself); one that fails there is not tried again. What a run that was
        cut off has measured already (kept.py) is taken over.

        Returns the samples, a list for each setting in order."""
        part, repeats = self._parts, (repeats or self.repeats) * rounds
        self._parts += 1
        samples = [self._kept.of(part, self.name_of(setting))[:repeats] if self._kept else [] for setting in settings]
        out = set()
        for index, setting in enumerate(settings):
            if len(samples[index]) == repeats:
                continue
            error = self.left_out(setting) or self._attempt(warm_up or measure, setting)[1]
            if error:
                out.add(index)
                samples[index].append({"error": error})
                self.say(f"{self.name_of(setting)}: {error}")
        for number in range(repeats):
            order = range(len(settings)) if number % 2 == 0 else reversed(range(len(settings)))
            for index in order:
                if index in out or len(samples[index]) > number:
                    continue
                name = self.name_of(settings[index])
                sample, error = self._attempt(measure, settings[index])
                sample = {"error": error} if error else sample
                samples[index].append(sample)
                if self._kept and not error:
                    self._kept.add(part, name, sample)
                self.say(f"round {number + 1} of {repeats}: {name}: {error or brief(sample)}")
        return samples

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


def brief(sample):
    speed = sample.get("goodput_gbps")
    return f"{speed:.3g} Gbit/s" if speed is not None else "done"


def bytes_for(sample, seconds, step=1 << 20):
    """How many bytes take about so long, by what a first run showed; a multiple of `step`."""
    return max(step, int(sample["goodput_gbps"] * 1e9 / 8 * seconds) // step * step)
