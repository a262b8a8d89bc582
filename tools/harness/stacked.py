# What is made in steps and undone in reverse, also when a step fails.
# SPDX-License-Identifier: Apache-2.0
import contextlib


class Stacked:
    """A context manager: a subclass makes itself in `_make`, and puts on `_stack` what undoes each step."""

    def __init__(self):
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _with_data(self, node, *settings):
        """The node with these settings above its own, and an export `data`: it is made now, and stopped in the end."""
        for each in settings:
            for section, keys in each.items():
                node.settings.setdefault(section, {}).update(keys)
        node.add_export("data", self.base / f"{node.name}-data")
        node.create()
        self._stack.callback(node.stop)
        return node

    def __exit__(self, *error):
        return self._stack.__exit__(*error)
