# SPDX-License-Identifier: Apache-2.0
"""The kernels under compute-sanitizer.

    python tests/gpu/sanitize.py [FOLDER]     writes a log a tool and sanitize.json to FOLDER

Kernels only, of at most 2^20 elements, without PyTorch's caching allocator, so that an access past
a tensor is past an allocation. Prints a verdict a tool; the exit code is 1 when one found an error,
and 4 when there is no GPU or no compute-sanitizer.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SECONDS_A_TOOL = 100
OURS = ["--kernel-name", "kns=opscope"]  # a part of the mangled name
TOOLS = {
    "memcheck": OURS,
    "racecheck": OURS,
    "initcheck": [],  # what fills the arguments must be watched as well
    "synccheck": OURS,
}
FOUND = 17  # the exit code that compute-sanitizer is asked to give
COUNTS = (1, 7, 255, 2049, 100_003)
LARGEST = 1 << 20


def exercise() -> None:
    """Every op, forward and backward, of every type, alignment and layout."""
    import torch
    from opscope import ops

    launched = 0

    def run(x: torch.Tensor, grad: torch.Tensor) -> None:
        nonlocal launched
        for approximate in ("none", "tanh"):
            ops.gelu(x, approximate=approximate)
            ops.gelu_backward(grad, x, approximate=approximate)
            launched += 2
        if x.dtype is torch.float32:
            ops.gelu_naive(x)
            launched += 1

    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for count in (*COUNTS, LARGEST):
            for offset in (0, 1) if count < LARGEST else (0,):
                whole = torch.ones(count + offset, device="cuda", dtype=dtype)
                run(whole[offset:], torch.ones(count, device="cuda", dtype=dtype))
        square = torch.ones(96, 130, device="cuda", dtype=dtype)
        run(square.t(), square.t())
        run(square[:, ::2], square[:, 1::2])
        run(square[:0], square[:0])
        x = torch.ones(1000, device="cuda", dtype=dtype, requires_grad=True)
        (first,) = torch.autograd.grad(ops.gelu(x).sum(), x, create_graph=True)
        first.sum().backward()
    torch.cuda.synchronize()
    print(f"exercised: {launched} calls")


def under(tool: str, program: str, folder: Path) -> dict[str, Any]:
    """Runs the exercise under one tool; past the time it is ended and said to be unfinished."""
    log = folder / f"sanitize-{tool}.log"
    command = [program, "--tool", tool, *TOOLS[tool], "--error-exitcode", str(FOUND)]
    command += ["--log-file", str(log), sys.executable, __file__, "--exercise"]
    begin = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    )
    try:
        out, _ = process.communicate(timeout=SECONDS_A_TOOL)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
    said = log.read_text() if log.exists() else ""
    summary = [line for line in said.splitlines() if "SUMMARY" in line]
    finished = "exercised:" in out
    clean = finished and process.returncode == 0 and bool(summary)
    clean = clean and all(re.search(r"\b0 (errors|hazards)", line) for line in summary)
    if not clean:
        print(out[-1500:], said[-3000:], sep="\n")
    return {
        "tool": tool,
        "verdict": "clean" if clean else "errors" if finished else "unfinished",
        "exit_code": process.returncode,
        "summary": summary,
        "seconds": round(time.monotonic() - begin, 1),
    }


def main() -> int:
    """Runs all tools."""
    if sys.argv[1:] == ["--exercise"]:
        exercise()
        return 0
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(program).exists():
        print("sanitize: error: no compute-sanitizer (install the CUDA toolkit)", file=sys.stderr)
        return 4
    import torch

    if not torch.cuda.is_available():
        print("sanitize: error: no GPU was found (run it on one)", file=sys.stderr)
        return 4
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as threads:  # a process a tool; none measures time
        results = list(threads.map(lambda tool: under(tool, program, folder), TOOLS))
    for row in results:
        print(f"{row['tool']:<10} {row['verdict']:<10} {row['seconds']:>6} s ", *row["summary"])
    (folder / "sanitize.json").write_text(json.dumps(results, indent=1) + "\n")
    return int(any(row["verdict"] != "clean" for row in results))


if __name__ == "__main__":
    sys.exit(main())
