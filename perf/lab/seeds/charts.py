# Panels as SVG: two side by side in the same axes. Text, lines and marks; nothing is loaded from elsewhere.
# SPDX-License-Identifier: Apache-2.0
import html
import math

from .parts import figure

WIDTH, HEIGHT = 1040, 330
_PANEL, _TOP, _BOTTOM, _LEFT = 520, 34, 78, 62
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
        return [(number * step, figure(number * step)) for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


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
    for number, (chart, title) in enumerate(((left, "the paper"), (right, "Sluice"))):
        begin = number * _PANEL
        x = Scale(axes.x, _values(charts, "x"), begin + _LEFT, begin + _PANEL - 14, from_zero=False)
        y = Scale(axes.y, _values(charts, "y"), HEIGHT - _BOTTOM, _TOP, from_zero=True)
        panels.append(_panel(chart, axes, title, begin, x, y))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{name}-t {name}-d" '
        f'font-family="system-ui,sans-serif"><title id="{name}-t">{html.escape(about[0])}</title>'
        f'<desc id="{name}-d">{html.escape(about[1])}</desc><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
        f"{''.join(panels)}</svg>"
    )


def _panel(chart, axes, title, begin, x, y):
    out = [_text(begin + _PANEL / 2, 20, title, size=14, colour="#111")]
    for value, text in y.ticks():
        out.append(f'<line x1="{begin + _LEFT}" x2="{begin + _PANEL - 14}" y1="{y.at(value):.1f}" y2="{y.at(value):.1f}" stroke="#ddd"/>')
        out.append(_text(begin + _LEFT - 6, y.at(value) + 4, text, "end", 11))
    for value, text in x.ticks():
        out.append(f'<line x1="{x.at(value):.1f}" x2="{x.at(value):.1f}" y1="{HEIGHT - _BOTTOM}" y2="{HEIGHT - _BOTTOM + 4}" stroke="#888"/>')
        out.append(_text(x.at(value), HEIGHT - _BOTTOM + 17, text, size=11))
    out.append(f'<rect x="{begin + _LEFT}" y="{_TOP}" width="{_PANEL - 14 - _LEFT}" height="{HEIGHT - _BOTTOM - _TOP}" fill="none" stroke="#888"/>')
    out.append(_text(begin + (_LEFT + _PANEL - 14) / 2, HEIGHT - _BOTTOM + 34, axes.x.text()))
    out.append(_text(begin + 14, (HEIGHT - _BOTTOM + _TOP) / 2, axes.y.text(), turn=True))
    if chart is None:
        out.append(_text(begin + _PANEL / 2 + 20, HEIGHT / 2 - 20, "not run", size=15, colour="#888"))
        return "".join(out)
    legend_x = begin + _LEFT
    for number, series in enumerate(chart.series):
        colour = _COLOURS[number % len(_COLOURS)]
        out.append(_series(series, colour, x, y))
        out.append(_mark(legend_x + 5, HEIGHT - 26, colour) + _text(legend_x + 14, HEIGHT - 22, series.name, "start", 11))
        legend_x += 26 + 6.1 * len(series.name)
    if chart.note:
        out.append(_text(begin + _LEFT, HEIGHT - 6, chart.note, "start", 11, "#666"))
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
        bound = point.get("bound")
        if bound in (">", "<", "<=", ">="):
            # The arrow shows to which side the value lies.
            tip = py - 14 if bound.startswith(">") else py + 14
            back = 4 if bound.startswith(">") else -4
            out.append(f'<path d="M{px:.1f},{py:.1f} V{tip:.1f} M{px - 3:.1f},{tip + back:.1f} L{px:.1f},{tip:.1f} L{px + 3:.1f},{tip + back:.1f}" '
                       f'fill="none" stroke="{colour}"/>')  # fmt: skip
    return "".join(out)
