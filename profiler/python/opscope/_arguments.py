# SPDX-License-Identifier: Apache-2.0
"""Command line arguments, refused in one line as every error of opscope is."""

import argparse
import sys
from typing import Any, NoReturn

from opscope._errors import Error
from opscope._output import CLOSED, ClosedPipeError, show
from opscope._text import readable

FORMATS = ("table", "json", "csv", "markdown")


class Parser(argparse.ArgumentParser):
    """`prog` is "opscope COMMAND"."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        command = self.prog.rpartition(" ")[2]
        print(
            readable(f"opscope: error: {command}: {message} (see {self.prog} --help)"),
            file=sys.stderr,
        )
        self.exit(2)

    def print_help(self, file: Any = None) -> None:
        """Ends the program where the help cannot be written."""
        try:
            show(self.format_help().rstrip("\n"))
        except ClosedPipeError:
            self.exit(CLOSED)
        except Error as failure:
            print(f"opscope: error: {failure}", file=sys.stderr)
            self.exit(3)
