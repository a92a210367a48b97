# SPDX-License-Identifier: Apache-2.0
"""Command line arguments, refused in one line as every error of opscope is."""

import argparse
import sys
from typing import NoReturn

FORMATS = ("table", "json", "csv", "markdown")


class Parser(argparse.ArgumentParser):
    """`prog` is "opscope COMMAND"."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with status 2."""
        command = self.prog.rpartition(" ")[2]
        print(
            f"opscope: error: {command}: {message} (see {self.prog} --help)",
            file=sys.stderr,
        )
        self.exit(2)
