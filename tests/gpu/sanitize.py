# SPDX-License-Identifier: Apache-2.0
"""Our kernels under one tool of compute-sanitizer.

    python tests/gpu/sanitize.py memcheck|racecheck|initcheck|synccheck

Runs sanitize_subjects.py without PyTorch's caching allocator, so that an access past a tensor is
past an allocation. Prints the tool's summary; the exit code is 1 when it found an error or did not
finish, and 4 when there is no GPU or no compute-sanitizer.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SUBJECTS = Path(__file__).with_name("sanitize_subjects.py")
OURS = ["--kernel-name", "kns=opscope"]  # a part of the mangled name
TOOLS = {
    "memcheck": OURS,
    "racecheck": OURS,
    "initcheck": [],  # what fills the arguments must be watched as well
    "synccheck": OURS,
}
ABSENT = 4
FOUND = 17  # the exit code that compute-sanitizer is asked to give


def main() -> int:
    """Runs the tool that the arguments name."""
    tool = sys.argv[1]
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(program).exists():
        print("no compute-sanitizer to watch a GPU (install the CUDA toolkit)", file=sys.stderr)
        return ABSENT
    import torch

    if not torch.cuda.is_available():
        print("no GPU was found", file=sys.stderr)
        return ABSENT
    command = [program, "--tool", tool, *TOOLS[tool], "--error-exitcode", str(FOUND)]
    done = subprocess.run(
        [*command, sys.executable, str(SUBJECTS)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    )
    said = done.stdout + done.stderr
    summaries = [line for line in said.splitlines() if "SUMMARY" in line]
    clean = done.returncode == 0 and "exercised" in done.stdout and bool(summaries)
    clean = clean and all(re.search(r"\b0 (errors|hazards)", line) for line in summaries)
    print(tool, "clean" if clean else "NOT CLEAN", *summaries)
    if not clean:
        print(said[-4000:])
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
