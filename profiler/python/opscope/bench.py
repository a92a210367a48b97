# SPDX-License-Identifier: Apache-2.0
"""`python -m opscope.bench CANDIDATE --against BASELINE --input SPEC…`: anybody's op, measured."""

import argparse
import ctypes
import importlib
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opscope._arguments import FORMATS, Parser
from opscope._errors import Error, one_line
from opscope._output import CLOSED, ClosedPipeError, show
from opscope._text import readable

if TYPE_CHECKING:
    import torch

_DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "i64": "int64",
    "i32": "int32",
    "i8": "int8",
    "bool": "bool",
}
_FILLS = ("randn", "rand", "zeros", "ones", "randint")
_SPEC = re.compile(r"(?P<fill>[a-z]+):(?P<shape>\d+(x\d+)*)(:(?P<dtype>[a-z0-9]+))?\Z")


class UsageError(Exception):
    """Wrong usage: exit status 2."""


class NoDeviceError(Exception):
    """The machine lacks what --strict asks for: exit status 4."""


def resolve(target: str, extra: dict[str, Any]) -> Callable[..., Any]:
    """The callable that `module:attribute` or a dotted name stands for.

    Args:
        extra: what --setup defined; a name without a dot is looked up there first.
    """
    if target in extra and callable(extra[target]):
        function: Callable[..., Any] = extra[target]
        return function
    module, colon, attribute = target.partition(":")
    if not colon:
        module, _, attribute = target.rpartition(".")
    if not module or not attribute:
        raise UsageError(
            f"cannot find {target}: it names no module (write module:attribute, or a name that "
            "--setup FILE.py defines)"
        )
    if "/" in module or module.endswith(".py"):
        raise UsageError(
            f"cannot find {target}: it names a file (give it as --setup {module}, and "
            f"{attribute} alone here)"
        )
    try:
        value = reduce(getattr, attribute.split("."), _import(module))
    except (ImportError, AttributeError) as failure:
        raise UsageError(
            f"cannot find {target}: {failure} (check the name, or --setup)"
        ) from failure
    except (Exception, SystemExit) as failure:  # anybody's module may raise anything
        raise Error(f"import {module}: {one_line(failure)} (correct the module)") from failure
    if not callable(value):
        raise UsageError(f"cannot measure {target}: it is not callable (name a function)")
    resolved: Callable[..., Any] = value
    return resolved


def _import(name: str) -> Any:
    """A module, or an attribute of one: `torch.ops.mine` is importable up to torch only."""
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, attribute = name.rpartition(".")
        if not parent:
            raise
        return getattr(_import(parent), attribute)


def make_input(spec: str, device: str) -> "tuple[torch.Tensor, ...]":
    """The tensors of a SPEC: `randn:4096x4096:bf16`, several joined by commas."""
    return tuple(_make_tensor(each, device) for each in spec.split(","))


def _make_tensor(spec: str, device: str) -> "torch.Tensor":
    import torch

    match = _SPEC.match(spec)
    if match is None or match["fill"] not in _FILLS:
        raise UsageError(
            f"cannot read input {spec!r}: write FILL:SHAPE[:DTYPE], as in randn:4096x4096:bf16 "
            f"(FILL is one of {', '.join(_FILLS)})"
        )
    name = match["dtype"] or ("i64" if match["fill"] == "randint" else "fp32")
    dtype = getattr(torch, _DTYPES.get(name, name), None)
    if not isinstance(dtype, torch.dtype):
        raise UsageError(f"cannot read input {spec!r}: no type {name} (try {', '.join(_DTYPES)})")
    shape = [int(size) for size in match["shape"].split("x")]
    if max(shape) >= 2**63:
        raise UsageError(
            f"cannot read input {spec!r}: a size exceeds 64 bits (write a smaller one)"
        )
    if match["fill"] in ("randn", "rand") and not dtype.is_floating_point:
        raise UsageError(
            f"cannot read input {spec!r}: {match['fill']} makes no {name} (use randint)"
        )
    try:
        if match["fill"] == "randint":
            return torch.randint(0, 100, shape, device=device).to(dtype)
        maker: Callable[..., torch.Tensor] = getattr(torch, match["fill"])
        return maker(shape, dtype=dtype, device=device)
    except RuntimeError as failure:
        raise Error(f"make input {spec}: {one_line(failure)} (try a smaller one)") from failure


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="opscope bench",
        description="Measure a callable against another: correctness, host and device time, the "
        "boundary's stages, DRAM bytes.",
        epilog=f"FILL: {', '.join(_FILLS)}. DTYPE: {', '.join(_DTYPES)}, or any of torch's names; "
        "fp32 unless given, for randint i64.",
    )
    parser.add_argument(
        "candidate", help="module:attribute, as in my_ops:gelu, or a name that --setup defines"
    )
    parser.add_argument("--against", required=True, metavar="BASELINE", help="the same form")
    parser.add_argument(
        "--input",
        required=True,
        action="append",
        metavar="SPEC",
        help="FILL:SHAPE[:DTYPE], as in randn:4096x4096:bf16; several arguments joined by commas; "
        "repeat for several rows",
    )
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="default: here")
    parser.add_argument("--backward", action="store_true", help="forward and gradients")
    parser.add_argument("--setup", metavar="FILE.py", help="run first; may define the callables")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--full", action="store_true", help="a table of every number")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    parser.add_argument("--strict", action="store_true", help="refuse what cannot be recorded")
    return parser


@contextmanager
def _prints_aside() -> Iterator[None]:
    """What contenders print, from C++ too, goes to stderr: stdout is the receipt's alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # what C left in its buffers
        os.dup2(kept, 1)
        os.close(kept)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise Error(
            "find the working directory: it was removed (change to a folder that exists)"
        ) from None


def _setup(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    if not Path(path).is_file():
        raise UsageError(f"cannot run --setup {path}: no such file (check the path)")
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        return runpy.run_path(path, run_name="opscope_setup")
    except (Exception, SystemExit) as failure:  # anybody's file may raise anything
        raise Error(f"run --setup {path}: {one_line(failure)} (correct the file)") from failure


def _tell(what: str) -> None:
    print(f"opscope: {what}", file=sys.stderr, flush=True)


def _measure(arguments: argparse.Namespace) -> int:
    from opscope._capture import refuse_existing
    from opscope._comparison import label_of, run
    from opscope._contenders import Cell, Contender, Settings

    here = _here()  # anybody's module, setup file or op may go elsewhere
    sys.path.insert(0, str(here))
    with _prints_aside():
        extra = _setup(arguments.setup)
        baseline = resolve(arguments.against, extra)
        candidate = resolve(arguments.candidate, extra)
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and arguments.strict:
        raise NoDeviceError("bench: no GPU was found (run it on one, or without --strict)")
    if device == "cpu":
        print("opscope: no GPU: measuring on the CPU, host time only", file=sys.stderr)
    cells = []
    for spec in arguments.input:
        tensors = make_input(spec, device)
        cells.append(Cell(label_of(*tensors), tensors))
    stem = re.sub(r"\W+", "_", re.split(r"[:.]", arguments.candidate)[-1]) or "candidate"
    folder = here / arguments.output
    folder.mkdir(parents=True, exist_ok=True)
    written = capture, trace, receipt_file = [
        folder / f"{stem}.{suffix}" for suffix in ("opscope", "trace.json", "receipt.json")
    ]
    refuse_existing(written, arguments.force, "--force")
    settings = Settings(
        output=capture,
        title=arguments.candidate,
        backward=arguments.backward,
        force=arguments.force,
        strict=arguments.strict,
        named=True,
        progress=_tell if sys.stderr.isatty() else None,
    )
    contenders = [Contender(arguments.against, baseline), Contender(arguments.candidate, candidate)]
    with _prints_aside():
        receipt = run(contenders, cells, settings)
    receipt.export(trace, force=arguments.force)
    receipt.save(receipt_file, force=arguments.force)
    show(receipt.text(arguments.format, full=arguments.full))
    first, second, last = (Path(arguments.output) / path.name for path in written)
    print(readable(f"opscope: wrote {first}, {second} and {last}"), file=sys.stderr)
    return 1 if receipt.any_wrong else 0


def report(failure: BaseException, strict: bool, what: str) -> int:
    """Says in one line what failed, and gives the exit status.

    Args:
        strict: what cannot be recorded was refused: status 4.
        what: was done when it failed, where the failure does not say so itself.
    """
    if isinstance(failure, (UsageError, NoDeviceError)):
        text, status = str(failure), 2 if isinstance(failure, UsageError) else 4
    elif isinstance(failure, OSError) and failure.filename:
        why = failure.strerror or type(failure).__name__
        text, status = f"open {failure.filename}: {why} (choose another path)", 3
    elif isinstance(failure, (Error, OSError)):
        text = str(failure)
        status = 4 if strict and text.startswith("compare: cannot record") else 3
    else:
        text, status = f"{what}: {one_line(failure)} (call the ops alone to see where)", 3
    line = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in readable(" ".join(text.split()))
    )
    print(f"opscope: error: {line}", file=sys.stderr)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        return _measure(arguments)
    except KeyboardInterrupt:
        return 130
    except ClosedPipeError:
        return CLOSED
    except (Exception, SystemExit) as failure:  # anybody's op may raise anything
        return report(failure, arguments.strict, f"measure {arguments.candidate}")


if __name__ == "__main__":
    sys.exit(main())
