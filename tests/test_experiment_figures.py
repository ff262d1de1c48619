"""The figures of the experiments: made from raw rows alone, every panel, every method, readable."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import matplotlib.style
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiment_rows import row
from experiments.methods import CEILING, METHODS, PLAIN
from experiments.report.figures import STYLE, draw, figures
from experiments.report.fingerprints import longest_stream
from experiments.report.looks import LOOKS
from experiments.report.panels import Curve, curve, panel, short
from experiments.report.series import COMMON, Spread, budgets, frontier, select, spread, streams

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes

    from experiments.report.series import Metric
    from experiments.results import Row

PANELS = {
    # which panel of the paper shows what: its captions, and section 6.3 and 6.4 where they name a panel
    "figure-10": "memory k, time k, recall k, precision k, error k, time skew",
    "figure-11": "precision skew, error skew, recall skew, precision epsilon, error epsilon, recall epsilon",
    "figure-12-words": "precision k, error k, recall k, precision epsilon, error epsilon, recall epsilon, "
    "time factor, error factor, recall factor",
}
LABELS = {
    "memory": "memory of the summary (KiB)",
    "time": "CPU time of one update (ns)",
    "recall": "recall",
    "precision": "precision",
    "error": "average relative error",
    "k": "k (heavy: n/k items or more)",
    "skew": "skew of the Zipf stream",
    "epsilon": "privacy parameter ε",
    "factor": "capacity over k, the factor c",
}


def everything() -> list[Row]:
    """Return rows of every method for all sweeps, three values in each, two releases at each point.

    The Zipf stream is too long for the wrapper at epsilon = 10, so that every note there is has to fit.
    """
    seeded = random.Random(5)
    points: list[dict[str, Any]] = [
        *({"k": k} for k in (32, 128, 1024)),
        *({"skew": skew} for skew in (1.4, 2.6)),
        *({"epsilon": epsilon} for epsilon in (0.001, 10.0)),
        *({"stream": "words", "skew": None, "k": k} for k in (128, 1024)),
        *({"stream": "words", "skew": None, "epsilon": epsilon} for epsilon in (0.001, 10.0)),
        *({"stream": "words", "skew": None, "factor": factor} for factor in (1, 16)),
    ]
    rows = []
    for point in points:
        for method, (_, family, _) in METHODS.items():
            public = {"epsilon": None, "delta": None} if family == PLAIN else {}
            if public and "epsilon" in point:
                continue
            for number in range(2):
                measured = {"recall": seeded.random(), "relative_error": 10 ** -seeded.uniform(1, 4), "draw": number}
                length = 2**24 if "stream" not in point else 1000
                rows.append(row(**point | public | measured | {"method": method, "length": length}))
    for epsilon, delta in ((0.1, 1e-3), (1.0, 1e-6)):
        for capacity in (32, 1024, 65536):
            for method in ("paper", "misra-gries", "misra-gries-published", "stable-threshold", "exact-histogram"):
                asked: dict[str, Any] = {"sweep": "frontier", "k": None, "factor": None, "recall": None}
                size = {"capacity": capacity, "memory_bytes": 50 * capacity, "released": capacity // 4}
                rows.append(row(**asked, **size, epsilon=epsilon, delta=delta, method=method))
    return rows


@pytest.fixture(scope="module")
def drawn() -> Iterator[dict[str, Figure]]:
    """Every figure, laid out."""
    with matplotlib.style.context(["default", STYLE]):
        made = dict(figures(everything()))
        for figure in made.values():
            figure.draw_without_rendering()
        yield made


@pytest.fixture
def axes() -> Iterator[Axes]:
    with matplotlib.style.context(["default", STYLE]):
        yield Figure().subplots()


def by_label(axes: Axes) -> dict[str, list[float]]:
    """Return the heights of each curve by its method; bars have names that begin with an underscore."""
    return {str(line.get_label()): list(np.asarray(line.get_ydata())) for line in axes.get_lines()}


class TestSeries:
    def test_percentiles_of_small_numbers(self) -> None:
        # the 5th percentile of 0, 1, ..., 20 is the second smallest; of 0 and 10 it is a twentieth of the way
        assert spread([row(released=value) for value in range(21)], "released") == Spread(10, 1, 19, 21)
        assert spread([row(recall=value) for value in (10, 0)], "recall") == Spread(5, 0.5, 9.5, 2)
        assert spread([row(recall=0.25)], "recall") == Spread(0.25, 0.25, 0.25, 1)

    def test_releases_without_a_value_are_left_out_and_counted_out(self) -> None:
        rows = [row(precision=None), row(precision=1.0), row(precision=0.5)]
        assert spread(rows, "precision") == Spread(0.75, 0.525, 0.975, 2)
        assert spread(rows[:1], "precision") is None
        assert spread([], "recall") is None

    @pytest.mark.parametrize("metric", ["recall", "precision", "relative_error"])
    def test_a_search_that_had_nothing_to_find_has_no_say_on_how_well_it_found_it(self, metric: Metric) -> None:
        """Also where something was released; its time and memory count, and on the frontier nothing was searched."""
        nothing = row(heavy=0, recall=None, precision=0.0, relative_error=9.0)
        found = row(recall=0.5, precision=0.5, relative_error=0.5)
        assert spread([nothing], metric) is None
        assert spread([nothing, found], metric) == Spread(0.5, 0.5, 0.5, 1)
        assert spread([nothing], "released") == Spread(10, 10, 10, 1)
        assert spread([nothing._replace(k=None)], "relative_error") == Spread(9, 9, 9, 1)

    def test_a_row_at_the_common_point_is_in_every_sweep(self) -> None:
        common = row()
        assert select([common], stream="zipf", method="paper", along="k") == {128: [common]}
        assert select([common], stream="zipf", method="paper", along="skew") == {1.1: [common]}
        assert select([common], stream="zipf", method="paper", along="epsilon") == {0.1: [common]}
        assert select([common], stream="zipf", method="paper", along="factor") == {2: [common]}

    @pytest.mark.parametrize(("along", "value"), [("k", 32), ("skew", 2.6), ("epsilon", 0.001), ("factor", 16)])
    def test_any_other_row_is_in_its_own_sweep_only_and_sweeps_ascend(self, along: Any, value: float) -> None:
        common, other = row(), row(**{along: value})
        places = select([other, common, other], stream="zipf", method="paper", along=along)
        assert list(places) == sorted((value, getattr(COMMON, along)))
        assert places[value] == [other, other]
        sweeps: set[Any] = {"k", "skew", "epsilon", "factor"}
        for sweep in sweeps - {along}:
            assert [*select([common, other], stream="zipf", method="paper", along=sweep).values()] == [[common]]

    @pytest.mark.parametrize("changed", [{"sweep": "frontier"}, {"stream": "words"}, {"method": "count-min"}])
    def test_rows_of_something_else_are_not_selected(self, changed: dict[str, Any]) -> None:
        assert select([row(**changed)], stream="zipf", method="paper", along="k") == {}

    def test_a_real_stream_has_no_skew_and_is_selected_all_the_same(self) -> None:
        real = row(stream="words", skew=None)
        assert select([real], stream="words", method="paper", along="k") == {128: [real]}
        assert select([real], stream="words", method="paper", along="skew") == {}

    def test_what_is_not_private_is_at_every_epsilon_of_the_stream(self) -> None:
        plain = row(method="plain-misra-gries", epsilon=None, delta=None)
        rows = [row(epsilon=10.0), plain, row(epsilon=0.01), row(stream="words", epsilon=1.0)]
        chosen = select(rows, stream="zipf", method="plain-misra-gries", along="epsilon")
        assert chosen == {0.01: [plain], 10.0: [plain]}
        assert select(rows, stream="zipf", method="plain-misra-gries", along="k") == {128: [plain]}

    def test_the_frontier_goes_by_capacity_and_budget_and_its_ceiling_is_one_point(self) -> None:
        asked: dict[str, Any] = {"sweep": "frontier", "k": None, "factor": None}
        small, large = row(**asked, capacity=32), row(**asked, capacity=64)
        other = row(**asked, capacity=32, delta=1e-6)
        ceiling = [row(**asked, capacity=size, method="exact-histogram") for size in (98, 100)]
        rows = [large, other, *ceiling, small, row()]
        budget: dict[str, Any] = {"stream": "zipf", "epsilon": 0.1, "delta": 0.001}
        assert frontier(rows, method="paper", **budget) == {32: [small], 64: [large]}
        assert frontier(rows, method="exact-histogram", **budget) == {100: ceiling}
        assert frontier(rows, method="misra-gries", **budget) == {}
        assert budgets(rows, stream="zipf") == [(0.1, 0.001), (0.1, 1e-6)]
        assert streams([row(stream="b"), row(stream="a"), row(stream="b")]) == ["b", "a"]


class TestLooks:
    def test_no_two_methods_look_the_same_even_in_grey(self) -> None:
        assert len({(look.marker, look.filled, look.line) for look in LOOKS.values()}) == len(METHODS)

    def test_the_ceiling_is_black_and_dashed_and_what_is_not_private_is_thinnest(self) -> None:
        by_family = {
            family: [LOOKS[key] for key in METHODS if METHODS[key].family == family] for family in (CEILING, PLAIN)
        }
        assert all(look.colour == "#000000" and look.line != "-" for look in by_family[CEILING])
        thinnest = min(look.width for look in LOOKS.values())
        assert {look.width for look in by_family[PLAIN]} == {thinnest}
        assert [key for key, look in LOOKS.items() if look.width == thinnest and METHODS[key].family != PLAIN] == []


class TestPanel:
    def test_a_method_without_any_release_leaves_a_gap_in_precision_and_is_drawn_at_recall_0(self, axes: Axes) -> None:
        nothing = {"released": 0, "recall": 0.0, "precision": None, "relative_error": None}
        points = {32: [row()], 128: [row(**nothing), row(**nothing)], 512: [row(precision=0.5)]}
        panel(axes, [curve("paper", points, "precision")], "k", "precision")
        one, gap, half = by_label(axes)["paper"]
        assert (one, half) == (1, 0.5)
        assert math.isnan(gap)
        axes.clear()
        panel(axes, [curve("paper", points, "recall")], "k", "recall")
        assert by_label(axes)["paper"] == [1, 0, 1]
        assert axes.get_ylim()[0] < 0

    def test_bars_go_from_the_5th_to_the_95th_percentile(self, axes: Axes) -> None:
        points = {32: [row(recall=value / 20) for value in range(21)]}
        panel(axes, [curve("paper", points, "recall")], "k", "recall")
        low, high, end = by_label(axes)["_paper"]
        assert (low, high) == pytest.approx((0.05, 0.95))
        assert math.isnan(end)

    def test_curves_that_coincide_stand_side_by_side(self, axes: Axes) -> None:
        panel(axes, [curve(key, {32: [row()], 64: [row()]}, "recall") for key in METHODS], "k", "recall")
        places = [
            line.get_transform().transform((32, 1))[0] for line in axes.get_lines() if line.get_marker() != "None"
        ]
        assert len({round(place, 3) for place in places}) == len(METHODS)
        between = axes.transData.transform((64, 1))[0] - axes.transData.transform((32, 1))[0]
        assert max(places) - min(places) < between

    def test_an_error_of_exactly_0_has_a_place_on_a_logarithmic_axis(self, axes: Axes) -> None:
        points = {0.1: [row(relative_error=0.02)], 10.0: [row(relative_error=0.0)]}
        panel(axes, [curve("paper", points, "relative_error")], "epsilon", "relative_error")
        assert axes.get_yscale() == "symlog"
        bottom, at_0, smallest = (
            axes.transAxes.inverted().transform(axes.transData.transform((1, y)))[1] for y in (-0.0025, 0, 0.01)
        )
        assert bottom < at_0 < smallest
        assert bottom == pytest.approx(0)

    def test_the_axis_of_precision_holds_every_value(self, axes: Axes) -> None:
        for worst in (1.0, 0.95, 0.6, 0.2):
            axes.clear()
            panel(axes, [Curve("paper", (32,), (Spread(1, worst, 1, 9),))], "k", "precision")
            low, high = axes.get_ylim()
            assert low < worst
            assert high > 1

    @pytest.mark.parametrize(
        ("value", "text"),
        [(0, "0"), (1e-6, "1e-6"), (2.5e-4, "2.5e-4"), (0.001, "0.001"), (0.1, "0.1"), (4096, "4096")],
    )
    def test_numbers_are_short(self, value: float, text: str) -> None:
        assert short(value) == text

    def test_a_panel_that_nothing_was_measured_for_says_so(self, axes: Axes) -> None:
        panel(axes, [curve("paper", {}, "recall")], "k", "recall")
        assert [text.get_text() for text in axes.texts] == ["no release, or no heavy label"]


class TestFigures:
    def test_every_figure_is_there_for_each_stream(self, drawn: dict[str, Figure]) -> None:
        assert set(drawn) == {*PANELS, "figure-13-zipf", "figure-14-zipf", "figure-14-words"}

    @pytest.mark.parametrize("name", PANELS)
    def test_every_panel_of_the_paper_is_drawn_in_its_place(self, drawn: dict[str, Figure], name: str) -> None:
        wanted = [tuple(LABELS[word] for word in text.split()) for text in PANELS[name].split(", ")]
        panels = drawn[name].axes
        assert [(one.get_ylabel(), one.get_xlabel()) for one in panels] == wanted
        assert [one.get_title("left")[:3] for one in panels] == [f"({letter})" for letter in "abcdefghi"[: len(panels)]]
        for one in panels:
            shown = {label for label in by_label(one) if not label.startswith("_")}
            assert len(shown) >= 8, f"{one.get_title('left')} of {name} shows {shown} only"

    def test_geometric_sweeps_have_logarithmic_axes(self, drawn: dict[str, Figure]) -> None:
        scales = {one.get_xlabel(): one.get_xscale() for name in PANELS for one in drawn[name].axes}
        logarithmic = {label for label, scale in scales.items() if scale == "log"}
        assert logarithmic == {LABELS["k"], LABELS["epsilon"], LABELS["factor"]}
        assert scales[LABELS["skew"]] == "linear"

    def test_every_method_is_shown_in_some_figure(self, drawn: dict[str, Figure]) -> None:
        shown = {label for figure in drawn.values() for one in figure.axes for label in by_label(one)}
        assert shown >= set(METHODS)

    def test_what_is_shown_is_in_the_legend_once(self, drawn: dict[str, Figure]) -> None:
        for name, figure in drawn.items():
            (legend,) = figure.legends
            named = [text.get_text() for text in legend.get_texts() if text.get_text()]
            shown = {key for key in METHODS for one in figure.axes if key in by_label(one)}
            assert sorted(named) == sorted(METHODS[key].title for key in shown), name

    def test_the_title_says_which_stream(self, drawn: dict[str, Figure]) -> None:
        assert "words; 1,000 items" in drawn["figure-12-words"].get_suptitle()
        assert "Zipf" in drawn["figure-13-zipf"].get_suptitle()

    def test_the_legend_says_how_many_releases_a_mean_is_of(self, drawn: dict[str, Figure]) -> None:
        titles = {name: figure.legends[0].get_title().get_text() for name, figure in drawn.items()}
        for name in (*PANELS, "figure-14-zipf", "figure-14-words"):
            assert titles[name].startswith("Mean of 2 releases, bar from the 5th to the 95th percentile"), name
        # made up: one release of each summary, and three of the ceiling, which has no capacity
        assert titles["figure-13-zipf"].startswith("Mean of 1 to 3 releases")

    @pytest.mark.parametrize(("items", "said"), [(2**24, True), (2**18, False)])
    def test_the_legend_says_where_nothing_can_be_released(self, items: int, said: bool) -> None:
        """Epsilon = 10, of more items than the wrapper can pay for: recall is 0 there and no finding."""
        rows = [row(length=items, method="count-min", epsilon=epsilon, recall=0.0) for epsilon in (1.0, 10.0)]
        titles = {name: figure.legends[0].get_title().get_text() for name, figure in figures(rows)}
        note = "At ε = 10 fingerprints of 64 bits let an envelope over labels by estimates release nothing of more"
        assert note not in titles.pop("figure-10")  # it has nothing along epsilon
        assert set(titles) == {"figure-11", "figure-14-zipf"}
        for title in titles.values():
            assert (f"{note} than {longest_stream(10.0, 0.001, 32):,} items" in title) == said
            assert "ε = 1 " not in title

    def test_the_synthetic_stand_in_is_called_that(self) -> None:
        made = dict(figures([row(stream="trace-stand-in", skew=None)]))
        assert "trace stand-in (synthetic)" in made["figure-12-trace-stand-in"].get_suptitle()

    def test_letters_are_large_enough_for_print_and_none_is_cut_off(self, drawn: dict[str, Figure]) -> None:
        for name, figure in drawn.items():
            assert figure.get_figwidth() <= 7.01  # inches: a printed page
            texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]
            for text in texts:
                assert float(text.get_fontsize()) >= 6.5
                assert "$" not in text.get_text()  # mathematics has smaller letters
            (legend,) = figure.legends
            for text in (*legend.get_texts(), legend.get_title()):
                box = text.get_window_extent()
                assert box.x0 >= 0, f"{name}: {text.get_text()}"
                assert box.x1 <= figure.bbox.x1, f"{name}: {text.get_text()}"

    def test_the_frontier_has_a_column_for_each_budget_over_measured_memory(self, drawn: dict[str, Figure]) -> None:
        panels = drawn["figure-13-zipf"].axes
        assert [one.get_title("left")[4:] for one in panels[:2]] == ["ε = 0.1, δ = 0.001", "ε = 1, δ = 1e-6"]
        assert [one.get_ylabel() for one in panels[::2]] == [
            "labels released",
            "mean absolute error (items)",
            "average relative error",
        ]
        (line,) = [line for line in panels[0].get_lines() if line.get_label() == "stable-threshold"]
        assert list(np.asarray(line.get_xdata())) == [50 * capacity / 1024 for capacity in (32, 1024, 65536)]
        assert list(np.asarray(line.get_ydata())) == [8, 256, 16384]


class TestFiles:
    """Drawing is slow, so these have few rows."""

    @pytest.fixture
    def few(self) -> list[Row]:
        return [row(k=k, method=method, recall=k / 1024) for k in (32, 128) for method in ("paper", "count-min")]

    def test_the_same_rows_give_the_same_files_and_a_changed_row_gives_others(
        self, few: list[Row], tmp_path: Path
    ) -> None:
        first = draw(few, tmp_path / "first")
        assert [path.name for path in first] == ["figure-10.svg", "figure-11.svg", "figure-14-zipf.svg"]
        again = draw(few, tmp_path / "again")
        changed = draw([few[0]._replace(recall=0.9), *few[1:]], tmp_path / "changed")
        assert [path.read_bytes() for path in again] == [path.read_bytes() for path in first]
        differ = [a.name for a, b in zip(first, changed, strict=True) if a.read_bytes() != b.read_bytes()]
        assert differ == ["figure-10.svg", "figure-14-zipf.svg"]  # figure 11 has nothing along k

    def test_a_file_has_its_title_and_the_names_of_its_panels(self, few: list[Row], tmp_path: Path) -> None:
        figure = draw(few, tmp_path)[0].read_text(encoding="utf-8")
        assert "<dc:title>Figure 10. Stream: Zipf; 1,000 items, 100 labels</dc:title>" in figure
        assert "<dc:date>" not in figure
        for title in ("(a) memory against k", "(c) recall against k", "(f) update time against skew"):
            assert f"<!-- {title} -->" in figure

    def test_no_rows_give_no_figure(self, tmp_path: Path) -> None:
        assert draw([], tmp_path / "new") == []
