# SPDX-License-Identifier: Apache-2.0
"""Records the captures that the GPU-free tests read: `python tests/gpu/record_fixtures.py FOLDER`.

Each is recorded in a process of its own, so that none has another's residue, and must stay below
300 kB. `--demo` records the one that the package ships (opscope/data/h200-gelu.opscope) too.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import opscope
import torch

LARGEST_BYTES = 300_000


def gelu_receipt(path: Path) -> None:
    """The demo's contenders at two sizes, few calls."""
    from opscope import demo
    from opscope._comparison import label_of, run
    from opscope._contenders import Cell, Settings

    cells = []
    for size in (1_024, 16_777_216):
        tensor = torch.randn(size, device="cuda")
        cells.append(Cell(label_of(tensor), (tensor,)))
    settings = Settings(path, "gelu", approximate="none and tanh", force=True, warmup=20, pairs=50)
    run(demo.contenders("cuda"), cells, settings)


def transformer_step(path: Path) -> None:
    """Forward, backward and update of a small block, with modules, shapes and DRAM bytes."""
    from training import transformer_block

    step = transformer_block(batch=2, length=128, width=256)
    step.run()
    torch.cuda.synchronize()
    with opscope.profile(path, shapes=True, dram="ops", force=True) as p:
        with opscope.range("training step", payload=1):
            step.run()
        p.step()


def graph_replay(path: Path) -> None:
    """A graph captured and replayed inside the session, and one captured before it."""
    x = torch.randn(1 << 16, device="cuda")
    torch.sin(torch.cos(x))
    earlier, within = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(earlier):
        torch.sin(x)
    with opscope.profile(path, force=True):
        with torch.cuda.graph(within):
            torch.sin(torch.cos(x))
        for _ in range(3):
            within.replay()
            earlier.replay()
        torch.cuda.synchronize()


def two_streams(path: Path) -> None:
    """Kernels that overlap on two streams, with an event between them."""
    x = torch.randn(1 << 22, device="cuda")
    side = torch.cuda.Stream()
    torch.cos(x)
    torch.cuda.synchronize()
    with opscope.profile(path, force=True):
        for _ in range(4):
            torch.cos(x)
            with torch.cuda.stream(side):
                torch.sin(x)
        torch.cuda.current_stream().wait_stream(side)
        torch.cos(x)
        torch.cuda.synchronize()


def copies_and_fills(path: Path) -> None:
    """Copies of every direction, pinned and not, and fills."""
    host = torch.randn(1 << 18)
    pinned = host.pin_memory()
    x = torch.empty(1 << 18, device="cuda")
    x.zero_()
    with opscope.profile(path, shapes=True, force=True):
        x.copy_(host)
        x.copy_(pinned, non_blocking=True)
        x.clone()
        x.zero_()
        pinned.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        x.cpu()


FIXTURES: dict[str, Callable[[Path], None]] = {
    "gelu-receipt": gelu_receipt,
    "transformer-step": transformer_step,
    "graph-replay": graph_replay,
    "two-streams": two_streams,
    "copies-and-fills": copies_and_fills,
}


def record_demo(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "opscope.demo", "-o", str(folder), "--force"], check=True)
    (folder / "gelu.opscope").replace(folder / "h200-gelu.opscope")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=FIXTURES, help="record this one in this process")
    parser.add_argument("--demo", action="store_true", help="record the demo's capture as well")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("record_fixtures: error: no GPU was found (run it on one)", file=sys.stderr)
        return 4
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.only:
        FIXTURES[arguments.only](arguments.folder / f"{arguments.only}.opscope")
        return 0
    failed = []
    for name in FIXTURES:
        command = [sys.executable, __file__, str(arguments.folder), "--only", name]
        done = subprocess.run(command, check=False)
        path = arguments.folder / f"{name}.opscope"
        size = path.stat().st_size if path.exists() else 0
        verdict = opscope.load(path).verify()["verdict"] if size else "none"
        print(f"{name}: {size:,} bytes, {verdict}")
        if done.returncode or not 0 < size < LARGEST_BYTES or verdict != "complete":
            failed.append(name)
    if arguments.demo:
        record_demo(arguments.folder)
    if failed:
        print(
            f"record_fixtures: error: not as they should be: {', '.join(failed)}", file=sys.stderr
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
