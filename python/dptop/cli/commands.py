"""The commands: each reads its options, checks all that can be checked, and only then reads, spends or writes."""

# no `from __future__ import annotations`: typer needs the annotations themselves

from typing import Any

import typer

import dptop
from dptop.cli import options as option
from dptop.cli.counting import SUMMARIES, Inputs, empty_summary
from dptop.cli.output import check_apart, destination, interruption, say
from dptop.cli.parts import Part, locked_parts, mark
from dptop.errors import InvalidParameter, SourceError
from dptop.mechanism import ENVELOPE
from dptop.parameters import one_of, shown
from dptop.release import Request, plan, release_as
from dptop.sharded import PARTITIONS, check_shards
from dptop.summary import check_replaceable
from dptop.tracked import ESTIMATES

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode="markdown")  # joins the lines below


@app.command()
def top(
    files: option.Files,
    *,
    column: option.Column = None,
    format_: option.Format = "auto",
    null: option.Null = None,
    top_: option.Top = option.DEFAULT_TOP,
    share: option.Share = None,
    epsilon: option.Epsilon = option.DEFAULT_EPSILON,
    delta: option.Delta = option.DEFAULT_DELTA,
    capacity: option.Capacity = option.DEFAULT_CAPACITY,
    partitions: option.Partitions = 1,
    threads: option.Threads = 1,
    summary: option.Kind = SUMMARIES[0],
    width: option.Width = None,
    depth: option.Depth = None,
    candidates: option.Candidates = None,
    mechanism: option.Mechanism = None,
    noise: option.Noise = None,
    length: option.Length = None,
    json: option.Json = False,
    table: option.Table = False,
    output: option.Output = None,
) -> None:
    """Release the most frequent labels of FILE..., with total (epsilon, delta), each file read once.

    The result is a table on a terminal and CSV in a pipe. The guarantee in words goes to stderr. The intervals, low to
    high, hold the true counts of all rows at once with probability 0.95.
    """
    request = Request(
        epsilon=epsilon, delta=delta, top=top_, share=share, length=length, mechanism=mechanism, noise=noise
    )
    envelope = mechanism == ENVELOPE or (mechanism is None and candidates == ESTIMATES)
    sketch = {"width": width, "depth": depth, "candidates": candidates}
    counted = empty_summary(summary, capacity, partitions, sketch, envelope=envelope)
    plan(request, counted)  # refuses what cannot be released before anything is read
    inputs = Inputs(files, column, format_, null, threads)
    write = destination(output, json=json, table=table, apart_from=files)
    inputs.count(counted)
    result = release_as(request, counted)
    with interruption("a part of the result may be out."):
        write(result)
        say(result.explain())


@app.command()
def summarize(
    files: option.Files,
    *,
    output: option.PartOut,
    column: option.Column = None,
    format_: option.Format = "auto",
    null: option.Null = None,
    capacity: option.Capacity = option.DEFAULT_CAPACITY,
    partitions: option.Partitions = 1,
    threads: option.Threads = 1,
    summary: option.Kind = SUMMARIES[0],
    width: option.Width = None,
    depth: option.DepthOfPart = None,
    candidates: option.Candidates = None,
    budget: option.BudgetOfPart = None,
) -> None:
    """Count FILE... and write a part, to be released later, by itself or with others. No noise is added here.

    A part is PRIVATE data, raw like the stream: it holds labels and exact counters. Keep it as you keep FILE...; only
    what dptop release makes of it is public. It is written whole, once all files were read to their ends, or not at
    all.

    All files of one call are one shard, as given: in which part an item is may depend on the item, and on where and
    when it came about, but never on its place among other items. Files that a stream was cut into by position (blocks
    of so many lines, round robin) are not protected.
    """
    sketch = {"width": width, "depth": depth, "candidates": candidates}
    counted = empty_summary(
        summary, capacity, partitions, sketch, envelope=candidates == ESTIMATES, budget=_budget(budget)
    )
    inputs = Inputs(files, column, format_, null, threads)
    if str(output) == "-":
        raise InvalidParameter("output must be a file, as a part is marked when it is released; got '-'. Name a file.")
    check_replaceable(output)
    check_apart(output, files)
    with interruption("nothing was written."):
        inputs.count(counted)
    with interruption("the part may be written, as a whole."):
        counted.save(output)
        say(f"{output}: written. A part is private data, raw like the stream; dptop release makes public what may be.")


@app.command()
def release(
    parts: option.Parts,
    *,
    partition: option.Partition = option.DEFAULT_PARTITION,
    top_: option.Top = option.DEFAULT_TOP,
    share: option.Share = None,
    epsilon: option.Epsilon = option.DEFAULT_EPSILON,
    delta: option.Delta = option.DEFAULT_DELTA,
    mechanism: option.MechanismOfParts = None,
    noise: option.Noise = None,
    length: option.Length = None,
    json: option.Json = False,
    table: option.Table = False,
    output: option.Output = None,
) -> None:
    """Release the most frequent labels of PART..., with total (epsilon, delta): one part, or several of space-saving.

    Every part is marked as spent, in its file, before noise is drawn. One that cannot be marked is not released, nor is
    one that was released before, unless it was summarized with a budget. Keep no copies: they are not marked, and to
    release one too would spend more than is promised here.

    The result is a table on a terminal and CSV in a pipe. The guarantee in words goes to stderr. The intervals, low to
    high, hold the true counts of all rows at once with probability 0.95.
    """
    request = Request(
        epsilon=epsilon, delta=delta, top=top_, share=share, length=length, mechanism=mechanism, noise=noise
    )
    one_of("partition", partition, PARTITIONS)
    write = destination(output, json=json, table=table, apart_from=parts)
    unspent, spent = "nothing was released, but parts may be marked as spent.", "the release is spent, and some of the"
    with interruption(unspent, f"{spent} result may be out.") as released:
        with locked_parts(parts) as found:
            together = _together(found, partition)
            plan(request, together)  # tells first what no part could be released with
            for part in found:
                part.check(request.spent, request.length)
            result = release_as(request, together, on_charged=lambda: mark(found))
            released()
        try:
            write(result)
        except SourceError as error:
            raise SourceError(f"{error} The release is spent.") from None
        say(result.explain())


def _together(parts: list[Part], partition: str) -> dptop.Summary | dptop.Sharded:
    """Return what the parts are released as: one by itself, several as shards of one stream."""
    if len(parts) == 1:
        return parts[0].summary
    shards = check_shards({part.name: part.summary for part in parts})  # errors with the names of files
    return dptop.Sharded(shards, partition)


def _budget(text: str | None) -> dptop.Budget | None:
    if text is None:
        return None
    numbers: list[Any] = [option.real(number) for number in text.split(",")]
    if len(numbers) != 2 or not all(isinstance(number, float) for number in numbers):
        raise InvalidParameter(f"budget must be EPSILON,DELTA; got {shown(text)}. Give two numbers, such as 2,2e-9.")
    return dptop.Budget(*numbers)
