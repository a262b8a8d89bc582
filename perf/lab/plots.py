# Plots of a result, by its experiment's own plots(); as files and as bytes for the report.
#
# They are made from the JSON alone, so they can be drawn again at any time.
# SPDX-License-Identifier: Apache-2.0
import io
import math

from . import experiments

PACKAGES = ("python3-matplotlib",)


def _figures(result):
    import matplotlib  # only here: results are measured without it

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for name, draw in experiments.load(result["experiment"]).plots(result):
        figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        draw(axes)
        if not all(map(math.isfinite, axes.dataLim.get_points().flat)):
            # Nothing was measured: what is left are axes that cannot be drawn.
            axes.clear()
            axes.text(0.5, 0.5, "nothing measured", ha="center", va="center", transform=axes.transAxes)
        yield name, figure
        pyplot.close(figure)


def images(result):
    """[(name, PNG bytes)]"""
    out = []
    for name, figure in _figures(result):
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
        out.append((name, file.getvalue()))
    return out


def save(result, folder, stem):
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, image in images(result):
        path = folder / f"{stem}-{name}.png"
        path.write_bytes(image)
        written.append(path)
    return written
