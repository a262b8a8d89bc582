# Panels as SVG: two side by side in the same axes. Text, lines and marks; nothing is loaded from elsewhere.
# SPDX-License-Identifier: Apache-2.0
import html
import math

from .parts import figure

WIDTH = 1040
_PANEL, _TOP, _LEFT, _RIGHT = 520, 34, 62, 14
_BASE = 252  # where the panels end below
_LINE = 16
_COLOURS = ("#20639b", "#c4472b", "#3c8d40", "#8255a8", "#a36b00", "#2a8a94", "#b03a7c", "#555555")
_DIFFER_FACTOR = 100  # beyond it an axis is logarithmic


class Scale:
    """Of one axis of both panels, onto pixels."""

    def __init__(self, axis, values, low_px, high_px, from_zero):
        positive = [value for value in values if value > 0]
        self.log = bool(positive) and (axis.log or (not axis.names and from_zero and max(positive) / min(positive) > _DIFFER_FACTOR))
        if axis.names:
            self.low, self.high = -0.5, len(axis.names) - 0.5
        elif self.log:
            self.low, self.high = math.floor(math.log10(min(positive)) + 1e-9), math.ceil(math.log10(max(positive)) - 1e-9)
            self.high = max(self.high, self.low + 1)
        else:
            low, high = min(values, default=0), max(values, default=1)
            if not from_zero:
                low -= (high - low) * 0.04
            self.low = 0 if from_zero and low >= 0 else low - (1 if low == high else 0)
            self.high = high + (high - self.low) * 0.06 or 1
        self._low_px, self._high_px = low_px, high_px
        self._names = axis.names

    def at(self, value):
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        share = (value - self.low) / (self.high - self.low)
        return self._low_px + share * (self._high_px - self._low_px)

    def ticks(self):
        """[(value, text)]"""
        if self._names:
            return list(enumerate(self._names))
        if self.log:
            step = max(1, math.ceil((self.high - self.low) / 7))
            return [(10.0**power, _power(power)) for power in range(self.low, self.high + 1, step)]
        step = _nice((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [(number * step, _short(number * step)) for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _short(value):
    return figure(value) if abs(value) < 1e5 else f"{value:g}".replace("e+0", "e") if abs(value) >= 1e6 else f"{value / 1000:g}k"


def _power(power):
    return f"{10**power:g}" if -3 <= power <= 4 else f"1e{power}"


def _nice(step):
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.999)


def _text(x, y, text, anchor="middle", size=12, colour="#333", turn=False):
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"{turned}>{html.escape(text)}</text>'


def _values(charts, key):
    found = []
    for chart in charts:
        for series in chart.series:
            for point in series.points:
                found.append(point[key])
                found += [point[end] for end in ("low", "high") if key == "y" and end in point]
    return found


def pair(left, right, name, about):
    """One SVG. left, right: charts of the same axes, or None where there is nothing to draw. about: for who cannot see it."""
    charts = [chart for chart in (left, right) if chart is not None]
    axes = charts[0]
    panels = []
    lines = max(len(_legend(chart)) + bool(chart.note) for chart in charts)
    height = _BASE + 44 + _LINE * lines
    for number, (chart, title) in enumerate(((left, "the paper"), (right, "Sluice"))):
        begin = number * _PANEL
        x = Scale(axes.x, _values(charts, "x"), begin + _LEFT, begin + _PANEL - _RIGHT, from_zero=False)
        y = Scale(axes.y, _values(charts, "y"), _BASE, _TOP, from_zero=True)
        panels.append(_panel(chart, axes, title, begin, x, y))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{name}-t {name}-d" '
        f'font-family="system-ui,sans-serif"><title id="{name}-t">{html.escape(about[0])}</title>'
        f'<desc id="{name}-d">{html.escape(about[1])}</desc><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f"{''.join(panels)}</svg>"
    )


def _legend(chart):
    """Lines of (series, place, colour), as many in a line as fit."""
    lines, x = [[]], 0.0
    for number, series in enumerate(chart.series):
        width = 26 + 6.2 * len(series.name)
        if lines[-1] and x + width > _PANEL - _LEFT:
            lines.append([])
            x = 0.0
        lines[-1].append((series, x, _COLOURS[number % len(_COLOURS)]))
        x += width
    return lines if lines[0] else []


def _frame(axes, title, begin, x, y):
    left, right = begin + _LEFT, begin + _PANEL - _RIGHT
    out = [_text(begin + _PANEL / 2, 20, title, size=14, colour="#111")]
    for value, text in y.ticks():
        out.append(f'<line x1="{left}" x2="{right}" y1="{y.at(value):.1f}" y2="{y.at(value):.1f}" stroke="#ddd"/>')
        out.append(_text(left - 6, y.at(value) + 4, text, "end", 11))
    for value, text in x.ticks():
        out.append(f'<line x1="{x.at(value):.1f}" x2="{x.at(value):.1f}" y1="{_BASE}" y2="{_BASE + 4}" stroke="#888"/>')
        out.append(_text(x.at(value), _BASE + 17, text, size=11))
    out.append(f'<rect x="{left}" y="{_TOP}" width="{right - left}" height="{_BASE - _TOP}" fill="none" stroke="#888"/>')
    out.append(_text((left + right) / 2, _BASE + 34, axes.x.text()))
    out.append(_text(begin + 14, (_BASE + _TOP) / 2, axes.y.text(), turn=True))
    return out


def _panel(chart, axes, title, begin, x, y):
    out = _frame(axes, title, begin, x, y)
    if chart is None or not chart.series:
        out.append(_text(begin + _PANEL / 2 + 20, (_BASE + _TOP) / 2, "not run" if chart is None else "only plotted", size=15, colour="#888"))
    if chart is None:
        return "".join(out)
    for number, series in enumerate(chart.series):
        out.append(_series(series, _COLOURS[number % len(_COLOURS)], x, y))
    at_y = _BASE + 52
    for line in _legend(chart):
        for series, at_x, colour in line:
            out.append(_mark(begin + _LEFT + at_x + 5, at_y - 4, colour) + _text(begin + _LEFT + at_x + 14, at_y, series.name, "start", 11))
        at_y += _LINE
    if chart.note:
        out.append(_text(begin + _LEFT, at_y, chart.note, "start", 11, "#666"))
    return "".join(out)


def _mark(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4" fill="{colour}"/>'


def _series(series, colour, x, y):
    out = []
    places = [(x.at(point["x"]), y.at(point["y"])) for point in series.points]
    if series.kind != "marks" and len(places) > 1:
        way = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
        out.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    for (px, py), point in zip(places, series.points):
        if "low" in point:
            out.append(f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{y.at(point["low"]):.1f}" y2="{y.at(point["high"]):.1f}" stroke="{colour}"/>')
        if series.kind != "curve":
            out.append(_mark(px, py, colour))
        if y.log and point["y"] == 0:
            out.append(_text(px, py - 8, "0", size=11, colour=colour))
        bound = point.get("bound")
        if bound in (">", "<", "<=", ">="):
            # The arrow shows to which side the value lies.
            tip = py - 14 if bound.startswith(">") else py + 14
            back = 4 if bound.startswith(">") else -4
            out.append(f'<path d="M{px:.1f},{py:.1f} V{tip:.1f} M{px - 3:.1f},{tip + back:.1f} L{px:.1f},{tip:.1f} L{px + 3:.1f},{tip + back:.1f}" '
                       f'fill="none" stroke="{colour}"/>')  # fmt: skip
    return "".join(out)
