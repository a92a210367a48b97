# SPDX-License-Identifier: Apache-2.0
"""What opscope raises. Apart from the native modules, which raise it too."""


class Error(RuntimeError):
    """Something could not be done: one line with what failed, why, and what to do about it."""


def one_line(failure: BaseException) -> str:
    """An exception's type and what it says first, without the C++ stack that torch may add."""
    lines = str(failure).strip().splitlines()
    text = lines[0] if lines else ""
    for appendix in (" (most recent", "Exception raised from"):
        text = text.partition(appendix)[0].rstrip()
    name = type(failure).__name__
    return f"{name}: {text}" if text else name
