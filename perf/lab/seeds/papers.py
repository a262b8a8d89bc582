# What the papers say, number by number (papers.json), and whether that file holds together.
#
# A value is printed in the paper, inferred by the arithmetic that stands beside it, or not there: what is only plotted
# or said in words has no number, since nobody shall read one off a plot. Doubts about a value are fields of it.
# SPDX-License-Identifier: Apache-2.0
import ast
import collections
import functools
import json
import math
import operator
import pathlib

FILE = pathlib.Path(__file__).with_name("papers.json")
SCHEMA = pathlib.Path(__file__).with_name("papers.schema.json")
# An inferred number is written with three digits and more.
_ROUNDING = 6e-3
_CALLS = {"exp": math.exp, "log": math.log}
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.Pow: operator.pow, ast.USub: operator.neg}  # fmt: skip


class Papers:
    """The document, by the ids of its parts."""

    def __init__(self, document):
        self.document = document
        self.names = document["papers"]
        self.exhibits = {each["id"]: each for each in document["exhibits"]}
        self.values = {each["id"]: each for each in document["values"]}

    def number(self, name):
        """The number of a value that has one; KeyError of any other, as nothing stands in for it."""
        return self.values[name]["value"]

    def of_exhibit(self, name):
        return [each for each in self.values.values() if name in each["exhibits"]]


@functools.cache
def load():
    return Papers(json.loads(FILE.read_text(encoding="utf-8")))


def evaluate(text):
    """The value of an arithmetic expression of numbers, + - * / **, exp and log; ValueError of anything else."""

    def of(node):
        if isinstance(node, ast.Expression):
            return of(node.body)
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](of(node.operand))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _CALLS and len(node.args) == 1:
            return _CALLS[node.func.id](of(node.args[0]))
        raise ValueError(f"{text}: no arithmetic of numbers")

    try:
        return of(ast.parse(text, mode="eval"))
    except SyntaxError:
        raise ValueError(f"{text}: no arithmetic of numbers") from None


def problems(document, drawn):
    """Sentences, one for each thing that is wrong. drawn: the ids of the exhibits that the page can draw."""
    found = list(_of_schema(document))
    if found:
        return found
    exhibits = [each["id"] for each in document["exhibits"]]
    found += _twice("exhibit", exhibits) + _twice("value", [each["id"] for each in document["values"]])
    found += [f"exhibit {name}: the page does not draw it; add it to perf/lab/seeds/exhibits" for name in exhibits if name not in drawn]
    found += [f"exhibit {name}: drawn, but papers.json has no such exhibit" for name in drawn if name not in exhibits]
    for each in document["exhibits"] + document["diagrams"] + document["values"]:
        if each["paper"] not in document["papers"]:
            found.append(f"{each.get('id', each.get('label'))}: {each['paper']} is no paper of the list")
    used = set()
    for each in document["values"]:
        used.update(each["exhibits"])
        found += [f"value {each['id']}: exhibit {name} is not in the list" for name in each["exhibits"] if name not in exhibits]
        found += _arithmetic(each)
    found += [f"exhibit {name}: no value of a paper belongs to it" for name in exhibits if name not in used]
    return found


def _of_schema(document):
    import jsonschema  # only here: a page is drawn without it

    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
    for error in sorted(validator.iter_errors(document), key=lambda each: [str(part) for part in each.path]):
        where = "/".join(map(str, error.absolute_path)) or "the document"
        name = error.instance.get("id") if isinstance(error.instance, dict) else None
        yield f"papers.json: {where}{f' ({name})' if name else ''}: {error.message[:200]}"


def _twice(kind, names):
    return [f"{kind} {name}: there are {count}" for name, count in collections.Counter(names).items() if count > 1]


def _arithmetic(value):
    if "arithmetic" not in value:
        return []
    try:
        found = evaluate(value["arithmetic"])
    except (ValueError, ArithmeticError) as error:
        return [f"value {value['id']}: {error}"]
    if abs(found - value["value"]) > _ROUNDING * abs(value["value"]):
        return [f"value {value['id']}: {value['arithmetic']} is {found:.6g}, not {value['value']:g}"]
    return []
