# SPDX-License-Identifier: Apache-2.0
"""Arguments of the package's functions, refused at the call."""

import os
from pathlib import Path


def flag(where: str, name: str, value: object) -> bool:
    """A bool: a text such as "no" would be taken for true."""
    if not isinstance(value, bool):
        raise TypeError(f"{where}: {name} must be a bool, not {type(value).__name__}")
    return value


def count(where: str, name: str, value: object, least: int = 0, bits: int = 32) -> int:
    """A whole number without a sign that the native parts hold in so many bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{where}: {name} must be an int, not {type(value).__name__}")
    if value < least:
        wanted = f"be at least {least}" if least else "not be negative"
        raise ValueError(f"{where}: {name} must {wanted}, got {value}")
    if value >= 2**bits:
        raise ValueError(f"{where}: {name} must be below 2**{bits}, got {value}")
    return value


def file_path(where: str, value: str | os.PathLike[str]) -> Path:
    """A path that the system can take."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{where}: path must be a str or a path, not {type(value).__name__}")
    path = Path(value)
    if "\0" in str(path):
        raise ValueError(f"{where}: path must not contain a NUL byte, got {str(path)!r}")
    return path
