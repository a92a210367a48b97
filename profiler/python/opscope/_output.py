# SPDX-License-Identifier: Apache-2.0
"""Standard output of the programs."""

import os
from contextlib import suppress

from opscope._errors import Error

CLOSED = 141  # as a shell tells of a program that SIGPIPE ended, which Python ignores


class ClosedPipeError(Exception):
    """Nobody reads on (`| head -1`): the program ends quietly, with the status `CLOSED`."""


def show(text: str) -> None:
    """Prints a result.

    Raises:
        ClosedPipeError: its reader is gone.
        Error: it cannot be written.
    """
    try:
        print(text, flush=True)
    except OSError as failure:
        with suppress(OSError):  # nothing is left for the interpreter's end to fail on
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(failure, BrokenPipeError):
            raise ClosedPipeError from None
        why = failure.strerror
        raise Error(
            f"write standard output: {why} (free some space, or write it to a file elsewhere)"
        ) from failure
