# What is said of a script by stage.py, and by burst_buffer.lua in each Lua that this host has as a library: the same.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import pathlib
import re
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import directives  # noqa: E402

GOOD = [
    "stage-in alpha:data/x /scratch/x",
    "stage-out /scratch/x alpha:data/",
    "\tstage-in  alpha:data/x\tbeta:data/%u/%j/100%% overwrite=yes mkdir=no",
    'stage-in "alpha:data/with blank" "/scratch/a b" list=/home/u/list',
    "stage-in alpha:/abs/x /y\r",
]
WRONG = [
    ("", "a directive is missing"),
    ("stage-on a:b /c", "unknown directive stage-on"),
    ("stage-in", "needs SRC and DST, and has 0"),
    ("stage-in alpha:x", "has 1 of them"),
    ("stage-in alpha:x /y /z", "has 3 of them"),
    ("stage-in alpha:x /y color=red", "unknown option color="),
    ("stage-in alpha:x /y overwrite=maybe", "overwrite=maybe: yes or no"),
    ("stage-in alpha:x /y list=", "write an absolute path"),
    ("stage-in alpha:x /y list=rel", "write an absolute path"),
    ("stage-in alpha:x /y list=/a list=/b", "list= is given twice"),
    ("stage-in alpha:x y", "neither an absolute path nor NODE:PATH"),
    ("stage-in alpha: /y", "neither an absolute path nor NODE:PATH"),
    ("stage-in memory:1G /y", "is no file"),
    ("stage-in alpha:x null:y", "is no file"),
    ("stage-in /x /y", "is at another node"),
    ("stage-in alpha:x alpha:y", "alpha is both source and destination"),
    ("stage-in alpha:%x /y", "'%x' in alpha:%x is not known"),
    ("stage-in alpha:x /y%", "is not known"),
    ("stage-in alpha:x /y%%%", "is not known"),
    ('stage-in "alpha:x /y', "a quote has no end"),
    ("stage-in alpha:x /y\x1b[m", "a control character"),
]


def said_by_python(script):
    try:
        directives.parse(script)
    except directives.Problem as problem:
        return f"sluice: {problem}"
    return None


class Lua:
    """burst_buffer.lua in a liblua, which Slurm loads as well; there is no interpreter to install."""

    def __init__(self, name):
        self._lua = lua = ctypes.CDLL(name)
        lua.luaL_newstate.restype = lua.lua_tolstring.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(lua.luaL_newstate())
        self._globals = None if hasattr(lua, "lua_getglobal") else -10002  # LUA_GLOBALSINDEX of 5.1
        lua.luaL_openlibs(self._state)
        load = lua.luaL_loadfilex if self._globals is None else lua.luaL_loadfile
        assert load(self._state, str(HERE / "burst_buffer.lua").encode(), None) == 0, self._text()
        self._call(0, 0)

    def _call(self, given, taken):
        if self._globals is None:
            status = self._lua.lua_pcallk(self._state, given, taken, 0, ctypes.c_ssize_t(0), None)
        else:
            status = self._lua.lua_pcall(self._state, given, taken, 0)
        assert status == 0, self._text()

    def _text(self):
        size = ctypes.c_size_t()
        at = self._lua.lua_tolstring(self._state, -1, ctypes.byref(size))
        return None if at is None else ctypes.string_at(at, size.value).decode()

    def run(self, code):
        """What this code returns, as a text."""
        assert self._lua.luaL_loadstring(self._state, code.encode()) == 0, self._text()
        self._call(0, 1)
        text = self._text()
        self._lua.lua_settop(self._state, 0)
        return text

    def said(self, script):
        if self._globals is None:
            self._lua.lua_getglobal(self._state, b"sluice_problem")
        else:
            self._lua.lua_getfield(self._state, self._globals, b"sluice_problem")
        data = script.encode()
        self._lua.lua_pushlstring(self._state, data, ctypes.c_size_t(len(data)))
        self._call(1, 1)
        text = self._text()
        self._lua.lua_settop(self._state, 0)
        return text


def readers():
    found = [pytest.param(said_by_python, id="python")]
    for version in ("5.1", "5.2", "5.3", "5.4"):
        try:
            found.append(pytest.param(Lua(f"liblua{version}.so.0").said, id=f"lua{version}"))
        except OSError:
            found.append(pytest.param(None, id=f"lua{version}", marks=pytest.mark.skip(f"no liblua{version}.so.0 here")))
    return found


@pytest.fixture(params=readers())
def says(request):
    return request.param


def slurm_says(lua, status, busy, call):
    """What burst_buffer.lua answers Slurm when stage.py ends with this status."""
    table = f"slurm = {{SUCCESS = 0, ERROR = -1, SLURM_BB_BUSY = {busy}}}"
    return lua.run(f"{table} io.popen = function(command) asked = command; return {{close = function() end, "
                   f"read = function() return 'it is so\\nstatus {status}\\n' end}} end "
                   f"local status, text = {call} return status .. ' ' .. tostring(text) .. (asked:match(' (\\'%w+\\' \\'in.*) 2>&1') or '')")  # fmt: skip


@pytest.mark.parametrize("name", ["liblua5.1.so.0", "liblua5.3.so.0", "liblua5.4.so.0"])
def test_only_0_is_a_success_for_slurm_of_either_api(name):
    try:
        lua = Lua(name)
    except OSError:
        pytest.skip(f"no {name} here")
    assert slurm_says(lua, 0, "nil", "slurm_bb_data_in('7', '/s')") == "0 nil'run' 'in' '7'"
    assert slurm_says(lua, 0, "'BUSY'", "slurm_bb_data_in('7', '/s', '1', '1')") == "0 nil'begin' 'in' '7'"
    assert slurm_says(lua, 75, "'BUSY'", "slurm_bb_test_data_in('7', '/s', '1', '1')") == "0 BUSY'test' 'in' '7'"
    for status in (1, 2, 21, 127, 137):
        for call in ("data_in", "test_data_in", "data_out", "test_data_out"):
            for busy in ("nil", "'BUSY'"):
                assert slurm_says(lua, status, busy, f"slurm_bb_{call}('7', '/s')").startswith("-1 it is so")
    assert slurm_says(lua, 75, "nil", "slurm_bb_data_in('7', '/s')").startswith("-1 ")


def script(*lines):
    return "\n".join(["#!/bin/bash", "#SBATCH -N1", *(f"#SLUICE {line}" if line else "#SLUICE" for line in lines), "true", ""])


def test_what_is_right_is_taken(says):
    assert says(script(*GOOD)) is None
    assert says("#!/bin/bash\n#SLUICEX nonsense\n# SLUICE nonsense\ntrue\n") is None
    assert says("") is None


@pytest.mark.parametrize("line, message", WRONG)
def test_what_is_wrong_is_told_with_its_line(says, line, message):
    text = says(script(GOOD[0], line))
    assert text is not None and text.startswith("sluice: line 4: ") and message in text
    assert text == said_by_python(script(GOOD[0], line))


def test_a_line_behind_the_first_command_is_not_passed_over(says):
    assert "line 3: Slurm reads directives before the first command only" in says("#!/bin/sh\ntrue\n#SLUICE stage-in a:b /c\n")


def test_there_are_no_more_lines_than_can_be(says):
    assert says(script(*[GOOD[0]] * directives.LINES_MAX)) is None
    assert f"more than {directives.LINES_MAX}" in says(script(*[GOOD[0]] * (directives.LINES_MAX + 1)))


def words_of(line, listed=None, job="12", user="ada"):
    stage = directives.parse(script(line))[0]
    for key in ("source", "destination"):
        setattr(stage, key, directives.expand(getattr(stage, key), job, user))
    return [(command.words, command.directory, command.text) for command in directives.commands(stage, listed)]


def test_a_line_becomes_a_command():
    detached = ["--detach", "--on-error", "pause"]
    assert words_of("stage-in alpha:data/%u/x%% /s/%j/x mkdir=yes") == [
        (["get", *detached, "--", "alpha:data/ada/x%", "/s/12/x"], "/s/12", "")]  # fmt: skip
    assert words_of("stage-out /s/%j/x beta:data/ overwrite=yes mkdir=yes") == [
        (["send", *detached, "--overwrite", "--mkdir", "--", "/s/12/x", "beta:data/"], "", "")]  # fmt: skip
    assert words_of("stage-in alpha:data/x beta:data/x")[0][0][:1] == ["send"]


def test_a_list_is_one_command_between_two_nodes_and_one_for_each_directory_here():
    listed = "# text\n\n./a\nd/b\r\n/d/c\na\n"
    assert words_of("stage-in alpha:data/s/ beta:data/t/ list=/l", listed)[0][2] == "./a\n./d/b\n./d/c\n./a\n"
    found = [(words[-3:], directory) for words, directory, _ in words_of("stage-in alpha:data/s /t list=/l", listed)]
    assert found == [(["--", "alpha:data/s/a", "/t/"], ""), (["alpha:data/s/d/b", "alpha:data/s/d/c", "/t/d/"], "/t/d/")]


@pytest.mark.parametrize("listed", ["", "# nothing\n", "../x\n", "a/../b\n", "a\x00b\n", "dir/\n", "./\n"])
def test_a_list_of_what_is_no_name_is_refused(listed):
    with pytest.raises(directives.Problem, match=re.escape("list=/l: ")):
        words_of("stage-in alpha:data/s /t list=/l", listed)
