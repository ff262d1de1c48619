"""The command line: data to stdout, words to stderr.

Exit codes: 0 released (also where nothing passed) or written, 1 the input or the budget forbids it, 2 wrong usage, 130
interrupted.
Nothing is released or written unless every input was read to its end.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated, Any, Final

import typer

import dptop
from dptop.cli.commands import app
from dptop.cli.output import Interrupted, discard_stdout, say
from dptop.errors import DptopError, InvalidParameter

__all__ = ["main"]

INTERRUPTED: Final = 130
UsageError: Final[Any] = typer.BadParameter.__base__
"""What the option parser raises; it has no public name of its own."""


def _version(wanted: bool) -> None:  # noqa: FBT001 - the parser hands over a flag
    if wanted:
        typer.echo(f"dptop {dptop.__version__}")
        raise typer.Exit


@app.callback()
def _commands(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Find the most frequent items of a stream in bounded memory and release them under differential privacy."""


def main() -> None:
    """Run the command line; the console script `dptop`."""
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        # not app(): that turns an interruption and a closed pipe into exit codes of its own
        with command.make_context("dptop", arguments) as context:
            command.invoke(context)
    except InvalidParameter as error:
        return _fail(error, 2)
    except DptopError as error:
        return _fail(error, 1)
    except BrokenPipeError:  # the reader has left, as `| head` does
        discard_stdout()
        return 0
    except SystemExit:  # by rich, which prints the help, in the same case
        return 0
    except Interrupted as interrupted:
        return _fail(f"interrupted; {interrupted}", INTERRUPTED)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was released.", INTERRUPTED)
    except typer.Exit as done:
        return done.exit_code
    except UsageError as error:
        with contextlib.suppress(OSError):  # stderr may be closed
            error.show()
        return int(error.exit_code)
    return 0


def _fail(error: object, code: int) -> int:
    say(f"dptop: {error}")
    return code
