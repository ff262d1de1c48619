"""Write the seeds of the fuzzer that are missing: `python crates/summaries/fuzz/make_seeds.py`.

Tables that have grown, small ones side by side, and many rows; tests/cases/saved-form-1 has a small file of each sort.
"""

from __future__ import annotations

from pathlib import Path

import dptop

FOLDER = Path(__file__).parent / "seeds"


def labels(count: int) -> list[str]:
    """Return labels of many lengths."""
    return [f"/{number}" * (1 + number % 9) for number in range(count)]


def seeds() -> dict[str, dptop.Summary]:
    """Return summaries by the name of their file."""
    made: dict[str, dptop.Summary] = {
        "grown": dptop.SpaceSaving(90),
        "full": dptop.SpaceSaving(60, tie="most-recent"),
        "free": dptop.SpaceSaving(2**31, max_label_bytes=64),
        "small_tables": dptop.SpaceSaving(40, partitions=12),
        "large_tables": dptop.SpaceSaving(2000, partitions=5, tie="most-recent"),
        "misra_gries": dptop.MisraGries(40),
        "rows": dptop.CountMin(3, 40),
        "signs": dptop.CountSketch(7, 13),
        "tracked": dptop.Tracked(dptop.CountSketch(5, 7), 30, "estimates"),
    }
    for number, summary in enumerate(made.values()):
        if number % 2:
            summary.extend([7 * rank - 90 for rank in range(70)] * 2, weights=[1 + rank % 5 for rank in range(140)])
        else:
            summary.extend(labels(70) + labels(20))
    return made


def main() -> None:
    """Write what is missing."""
    FOLDER.mkdir(exist_ok=True)
    for name, summary in seeds().items():
        path = FOLDER / f"{name}.dptop"
        if not path.exists():
            path.write_bytes(summary.to_bytes())


if __name__ == "__main__":
    main()
