# SPDX-License-Identifier: Apache-2.0
"""What each layer of the collector costs per launch, and what torch.profiler costs beside it.

    python profiler/bench/layer_cost.py [--json FILE] [--blocks N] [--launches N] [--processes N]
                                         [--seconds N]

Method. A launch is one call of a Python function that calls F.gelu on 1,024 floats; a block is
`--launches` of them by the host's clock, the device idle before and synchronised after, outside the
time. Layers: blocks with and without a session in pairs, in alternating order, in one process after
a first use of CUPTI, so that its residue is in both; the figure is the median of the pairs'
differences with a 95% bootstrap interval. Residue: in a process of its own, blocks after its first
session less blocks before it, when neither CUPTI nor opscope was loaded; less what the second half
gains or loses in an alternating process that has no session. torch.profiler: alternating processes
of its own, each with profiled and unprofiled blocks in pairs; opscope is not loaded there. Past its
part of `--seconds` a measurement ends with the pairs that it has, which stand in the report.
Without a GPU the call is F.gelu on 16 floats on the CPU, and what needs a GPU is said to be not
measured.
"""

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812

OFF, ENTRY, CALLS = 0, 1, 2  # Python modes
WARMUP = 200
FEWEST_PAIRS = 6
PARTS = {"residue": 0.3, "torch": 0.3, "layers": 0.4}  # of the time


class Layer(NamedTuple):
    """A set of layers that is switched on together."""

    name: str
    api: bool
    ops: bool
    shapes: bool = False
    python: int = OFF
    needs_gpu: bool = False


LAYERS = [
    Layer("kernels", api=False, ops=False, needs_gpu=True),
    Layer("+ API", api=True, ops=False, needs_gpu=True),
    Layer("+ ops", api=True, ops=True),
    Layer("+ ops with shapes", api=True, ops=True, shapes=True),
    Layer("+ Python entry", api=True, ops=True, python=ENTRY),
    Layer("+ Python calls", api=True, ops=True, python=CALLS),
]


class Session:
    """Sessions with chosen layers, in this process.

    `opscope.profile` has no such switches: a user wants the whole picture, only its price is asked
    for in parts.
    """

    def __init__(self, folder: Path) -> None:
        import opscope  # finds the libraries
        from opscope import _core

        self.version = opscope.__version__
        self.core = _core
        self.capture = str(folder / "layers.opscope")

    @contextmanager
    def __call__(self, layer: Layer) -> Iterator[None]:
        self.core.session_start(
            self.capture,
            force=True,
            gpu=torch.cuda.is_available(),
            python=layer.python,
            shapes=layer.shapes,
            api=layer.api,
            ops=layer.ops,
            nvtx=False,
        )
        try:
            yield
        finally:
            self.core.session_stop()

    def dropped(self) -> int:
        """Records that the last session dropped."""
        ledger: dict[str, dict[str, int]] = json.loads(self.core.verify(self.capture, "json"))[
            "ledger"
        ]
        return sum(ledger["dropped"].values())


@contextmanager
def nothing() -> Iterator[None]:
    """An unprofiled block."""
    yield


def launch(x: torch.Tensor) -> torch.Tensor:
    """One launch, from a Python function of the user's."""
    return F.gelu(x)


def block(x: torch.Tensor, launches: int) -> float:
    """Nanoseconds of host time per launch."""
    for _ in range(WARMUP):
        launch(x)
    synchronise()
    begin = time.perf_counter_ns()
    for _ in range(launches):
        launch(x)
    elapsed = time.perf_counter_ns() - begin
    synchronise()
    return elapsed / launches


def synchronise() -> None:
    """Waits for the device, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def subject() -> torch.Tensor:
    """What the launches work on; on the CPU one thread does it, so that no pool is in the times."""
    if not torch.cuda.is_available():
        torch.set_num_threads(1)
        return torch.randn(16)
    return torch.randn(1024, device="cuda")


def pairs(
    on: Callable[[], Any], blocks: int, launches: int, seconds: float = float("inf")
) -> list[tuple[float, float]]:
    """(with, without) of each pair of blocks; the order within a pair alternates.

    Past `seconds` no further pair begins, unless there are fewer than FEWEST_PAIRS.
    """
    x = subject()
    result: list[tuple[float, float]] = []
    begin = time.monotonic()
    for number in range(blocks):
        if number >= FEWEST_PAIRS and time.monotonic() - begin > seconds:
            break
        times = {}
        for profiled in (True, False) if number % 2 else (False, True):
            with on() if profiled else nothing():
                times[profiled] = block(x, launches)
        result.append((times[True], times[False]))
    return result


def interval(values: list[float]) -> list[float] | None:
    """95% bootstrap interval of the median; None for so few values that none holds as often."""
    if len(values) < FEWEST_PAIRS:
        return None
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(2000))
    return [medians[50], medians[1949]]


def figure(name: str, measured: list[tuple[float, float]], **more: object) -> dict[str, object]:
    """A row of the report from pairs of (with, without)."""
    differences = [on - off for on, off in measured]
    return {
        "name": name,
        "without_ns": statistics.median(off for _, off in measured),
        "with_ns": statistics.median(on for on, _ in measured),
        "cost_ns": statistics.median(differences),
        "interval_ns": interval(differences),
        "pairs": len(measured),
        **more,
    }


def measure_layers(options: argparse.Namespace) -> list[dict[str, object]]:
    """The rows of the layers; runs in this process."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        with session(LAYERS[-1]):
            block(subject(), WARMUP)  # the first use
        for layer in LAYERS:
            if layer.needs_gpu and not torch.cuda.is_available():
                rows.append({"name": layer.name, "not_measured": "needs a GPU"})
                continue
            seconds = options.seconds * PARTS["layers"] / len(LAYERS)
            measured = pairs(partial(session, layer), options.blocks, options.launches, seconds)
            rows.append(figure(layer.name, measured, dropped=session.dropped()))
    return rows


def child_halves(
    options: argparse.Namespace, between: Callable[[torch.Tensor], None]
) -> list[tuple[float, float]]:
    """(after, before) of unprofiled blocks, with `between` run between the halves."""
    x = subject()
    block(x, options.launches)  # the first is slower in every process
    before = [block(x, options.launches) for _ in range(options.blocks)]
    between(x)
    after = [block(x, options.launches) for _ in range(options.blocks)]
    return list(zip(after, before, strict=True))


def one_session(x: torch.Tensor) -> None:
    """The first session of this process."""
    with tempfile.TemporaryDirectory() as folder, Session(Path(folder))(LAYERS[-1]):
        block(x, WARMUP)


def session_and_detach(x: torch.Tensor) -> None:
    """The first session of this process, and CUPTI's end."""
    one_session(x)
    import opscope

    opscope.detach()


def child_torch(options: argparse.Namespace, cpu: bool) -> list[tuple[float, float]]:
    """Pairs of blocks with and without torch.profiler."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU] if cpu else []
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return pairs(partial(profile, activities=activities), options.blocks, options.launches)


ROLES: dict[str, Callable[[argparse.Namespace], list[tuple[float, float]]]] = {
    "fresh": lambda options: child_halves(options, lambda _: None),
    "used": lambda options: child_halves(options, one_session),
    "detached": lambda options: child_halves(options, session_and_detach),
    "torch-cuda": lambda options: child_torch(options, cpu=False),
    "torch-cpu": lambda options: child_torch(options, cpu=True),
}


def in_processes(
    roles: list[str], options: argparse.Namespace, part: str
) -> dict[str, list[list[Any]]]:
    """What each role measured, one list a process; the roles' processes alternate.

    A round of them begins only where it fits the time, the first one always.
    """
    results: dict[str, list[list[Any]]] = {role: [] for role in roles}
    begin = time.monotonic()
    for number in range(options.processes):
        gone = time.monotonic() - begin
        if number and gone + gone / number > options.seconds * PARTS[part]:
            break
        for role in roles:
            command = [sys.executable, __file__, "--role", role]
            command += ["--blocks", str(max(2, options.blocks // options.processes))]
            command += ["--launches", str(options.launches)]
            run = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, timeout=options.seconds
            )
            results[role].append(json.loads(run.stdout.splitlines()[-1]))
    return results


def measure_residue(options: argparse.Namespace) -> list[dict[str, object]]:
    """What a launch costs more after a session than before it, without and with a detach."""
    names = {"used": "residue after a session", "detached": "the same, detached"}
    if not torch.cuda.is_available():
        return [{"name": name, "not_measured": "needs a GPU"} for name in names.values()]
    results = in_processes(["fresh", *names], options, "residue")
    rows = []
    for role, name in names.items():
        measured = []
        for fresh, used in zip(results["fresh"], results[role], strict=True):
            after, before = halves(used)
            idle_after, idle_before = halves(fresh)
            measured.append((after, before + idle_after - idle_before))
        rows.append(figure(name, measured))
    return rows


def halves(process: list[Any]) -> tuple[float, float]:
    """Medians of a process's blocks: (after, before)."""
    return (
        statistics.median(after for after, _ in process),
        statistics.median(before for _, before in process),
    )


def measure_torch(options: argparse.Namespace) -> list[dict[str, object]]:
    """torch.profiler's rows."""
    names = {"torch-cuda": "torch.profiler CUDA", "torch-cpu": "torch.profiler CPU+CUDA"}
    rows: list[dict[str, object]] = []
    if not torch.cuda.is_available():
        rows.append({"name": names.pop("torch-cuda"), "not_measured": "needs a GPU"})
        names["torch-cpu"] = "torch.profiler CPU"
    results = in_processes(list(names), options, "torch")
    for role, name in names.items():
        rows.append(figure(name, [tuple(pair) for process in results[role] for pair in process]))
    return rows


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [
        f"Cost per launch, ns: {report['device']}, {report['launches']} launches a block",
        f"{'layers':<26}{'without':>9}{'with':>9}{'cost':>9}  {'95% interval':<17}{'pairs':>5}",
    ]
    for row in report["rows"]:
        if "not_measured" in row:
            lines.append(f"{row['name']:<26}not measured: {row['not_measured']}")
            continue
        found = row["interval_ns"]
        span = f"{found[0]:.0f} to {found[1]:.0f}" if found else "too few pairs"
        note = f"  {row['dropped']:,} dropped" if row.get("dropped") else ""
        lines.append(
            f"{row['name']:<26}{row['without_ns']:>9.0f}{row['with_ns']:>9.0f}"
            f"{row['cost_ns']:>9.0f}  {span:<17}{row['pairs']:>5}{note}"
        )
    return "\n".join(lines)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the report here as well")
    parser.add_argument("--blocks", type=int, default=20, help="pairs of blocks per row")
    parser.add_argument("--launches", type=int, default=5000, help="launches per block")
    parser.add_argument("--processes", type=int, default=6, help="processes per kind")
    parser.add_argument("--seconds", type=float, default=130, help="time for all measurements")
    parser.add_argument("--role", choices=sorted(ROLES), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measures, prints, and writes."""
    options = parse()
    if options.role:
        print(json.dumps(ROLES[options.role](options)))
        return
    gpu = torch.cuda.is_available()
    report = {
        "schema": "opscope.layer-cost/1",
        "device": torch.cuda.get_device_name() if gpu else f"CPU {platform.machine()}, no GPU",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "launches": options.launches,
        "method": " ".join(__doc__.split("Method. ")[1].split()),
        # first, so that nothing this process does can slow the others
        "rows": [*measure_residue(options), *measure_torch(options)],
    }
    report["rows"] = measure_layers(options) + report["rows"]
    print(table(report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
