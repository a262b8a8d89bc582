# Samples of a run that is not finished, in a file: a run that is cut off loses only what it measured last.
#
# One JSON object a line. The first says what run it is; of another run, as after a new commit, nothing is taken over.
# Every other is one sample: the number of the `interleave` that asked for it, the setting's line, what was measured.
# SPDX-License-Identifier: Apache-2.0
import json


class Kept:
    def __init__(self, path, run, resume):
        """run: a JSON object that two runs share only if their samples may stand in one row."""
        self.path = path
        self._samples = {}
        if not (resume and self._read(run)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(run) + "\n")

    def _read(self, run):
        try:
            first, *rest = self.path.read_text().splitlines()
            if json.loads(first) != run:
                return False
        except (OSError, ValueError):
            return False
        for line in rest:
            try:
                part, name, sample = json.loads(line)
            except ValueError:
                break  # cut off in the middle of it
            self._samples.setdefault((part, name), []).append(sample)
        whole = [json.dumps([*key, sample]) for key, samples in self._samples.items() for sample in samples]
        self.path.write_text("\n".join([first, *whole]) + "\n")
        return True

    def count(self):
        return sum(map(len, self._samples.values()))

    def of(self, part, name):
        return list(self._samples.get((part, name), ()))

    def add(self, part, name, sample):
        with open(self.path, "a") as file:
            file.write(json.dumps([part, name, sample]) + "\n")

    def forget(self):
        """All of it is in a result now."""
        self.path.unlink(missing_ok=True)
