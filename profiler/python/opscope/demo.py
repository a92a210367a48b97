# SPDX-License-Identifier: Apache-2.0
"""`python -m opscope.demo`: a custom GELU op against the builtin, Python call to DRAM byte."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opscope._arguments import FORMATS, Parser
from opscope._errors import Error
from opscope._output import CLOSED, ClosedPipeError, show
from opscope._text import readable
from opscope.bench import report

if TYPE_CHECKING:
    from opscope._contenders import Cell, Contender
    from opscope._receipt import Receipt

SIZES = (1_024, 65_536, 1_048_576, 16_777_216, 268_435_456)
# Input and its copy, results in float64 and float32, differences: what a cell's correctness pass
# holds at once.
_BYTES_PER_ELEMENT = 44
_RECORDED = Path(__file__).parent / "data" / "h200-gelu.opscope"


def contenders(device: str) -> "list[Contender]":
    """Each candidate after the builtin with the same `approximate`; gelu_naive is CUDA only.

    None has a Python function of ours around it.
    """
    import torch
    import torch.nn.functional as functional

    import opscope.ops
    from opscope._contenders import Contender

    exact = Contender("torch.nn.functional.gelu", functional.gelu)
    ours = Contender("opscope::gelu", opscope.ops.gelu)
    if device == "cpu":
        return [exact, ours]
    tanh = Contender("torch.nn.functional.gelu tanh", functional.gelu, {"approximate": "tanh"}, 2)
    naive = Contender("opscope::gelu_naive", torch.ops.opscope.gelu_naive.default, {}, 2)
    return [exact, ours, tanh, naive]


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return sys.maxsize


def cells(device: str) -> "list[Cell]":
    """An input a size; one that memory does not allow says so."""
    import torch

    from opscope._comparison import label_of
    from opscope._contenders import Cell

    made = []
    for size in SIZES:
        label = f"{size:,} fp32"
        if device == "cpu" and size * _BYTES_PER_ELEMENT > _available_bytes():
            made.append(Cell(label, (), "this machine's free memory does not allow it", size))
            continue
        try:
            tensor = torch.randn(size, device=device)
        except RuntimeError:
            made.append(Cell(label, (), f"the {device}'s memory does not allow it", size))
            continue
        made.append(Cell(label_of(tensor), (tensor,)))
    return made


def measure(folder: Path, force: bool, strict: bool) -> "Receipt":
    """Runs the comparison on the GPU, or on the CPU where there is none."""
    import torch

    from opscope._comparison import run
    from opscope._contenders import Settings

    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = Settings(
        output=(folder / "gelu.opscope").absolute(),
        title="gelu",
        approximate="none" if device == "cpu" else "none and tanh",
        force=force,
        strict=strict,
        progress=lambda what: print(f"opscope: {what}", file=sys.stderr, flush=True),
    )
    return run(contenders(device), cells(device), settings)


def _say(text: str, form: str) -> None:
    """Says what follows; a receipt that a program reads stands alone."""
    if form == "table":
        show(text)
    else:
        print(text, file=sys.stderr)


def _files(folder: Path, stem: str) -> list[Path]:
    """A capture, its trace and its receipt."""
    return [folder / f"{stem}.{suffix}" for suffix in ("opscope", "trace.json", "receipt.json")]


def replay(folder: Path, force: bool, form: str | None = "table", full: bool = False) -> bool:
    """Shows the recorded capture through the same analyses; False when there is none.

    Args:
        form: as --format names it; None writes the files only.
    """
    from opscope._capture import refuse_existing
    from opscope._receipt import Receipt, write_bytes

    if not _RECORDED.is_file():
        print(f"opscope: no recorded GPU capture in this build ({_RECORDED.name})", file=sys.stderr)
        return False
    capture, trace, document_file = _files(folder, "gelu-recorded")
    refuse_existing((capture, trace, document_file), force, "--force")
    receipt = Receipt(_RECORDED)
    document: dict[str, Any] = receipt.to_dict()
    write_bytes(capture, _RECORDED.read_bytes(), force)
    receipt.export(trace, force=force)
    receipt.save(document_file, force=force)
    if form is not None:
        _say(f"\nRecorded earlier on {document.get('device', 'a GPU')}, not measured now:\n", form)
        show(receipt.text(form, full=full))
    return True


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="opscope demo",
        description="Measure a custom GELU op against the builtin, from the Python call to the "
        "DRAM byte. Without a GPU: the CPU ops live, and a capture recorded on one.",
    )
    parser.add_argument("-o", "--output", default=".", metavar="DIR", help="default: here")
    parser.add_argument("--replay", action="store_true", help="only show the recorded capture")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="table",
        help="of the receipt; without a GPU only the table is followed by the recorded one",
    )
    parser.add_argument("--full", action="store_true", help="a table of every number")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    parser.add_argument("--strict", action="store_true", help="refuse what cannot be recorded")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.replay:
        return 0 if replay(folder, arguments.force, arguments.format, arguments.full) else 3
    import torch

    from opscope._capture import refuse_existing

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        if arguments.strict:
            print(
                "opscope: error: demo: no GPU was found (run it on one, or without --strict)",
                file=sys.stderr,
            )
            return 4
        _say("Measured now on this machine's CPU (no GPU was found):\n", arguments.format)
    _, trace, document = written = _files(folder, "gelu")
    recorded = [] if on_gpu else _files(folder, "gelu-recorded")
    refuse_existing(written + recorded, arguments.force, "--force")
    receipt = measure(folder, arguments.force, arguments.strict)
    receipt.export(trace, force=arguments.force)
    receipt.save(document, force=arguments.force)
    show(receipt.text(arguments.format, full=arguments.full))
    _say(
        "\nopscope::gelu is called as opscope.ops.gelu, from Python"
        + (", opscope::gelu_naive as torch.ops.opscope.gelu_naive.default." if on_gpu else "."),
        arguments.format,
    )
    shown = "table" if arguments.format == "table" else None
    if not on_gpu and replay(folder, arguments.force, shown, arguments.full):
        written += recorded
    names = ", ".join(path.name for path in written)
    where = readable(str(folder))
    print(f"opscope: wrote {names} to {where} (--full shows every number)", file=sys.stderr)
    return 1 if receipt.any_wrong else 0


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return 130
    except ClosedPipeError:
        return CLOSED
    except (Error, OSError, RuntimeError, ImportError) as failure:
        return report(failure, arguments.strict, "demo")


if __name__ == "__main__":
    sys.exit(main())
