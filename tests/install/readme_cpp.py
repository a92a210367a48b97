# SPDX-License-Identifier: Apache-2.0
"""Runs the README's commands for a C++ program: `readme_cpp.py ROOT BUILD FOLDER`.

Its `build/dev` is BUILD and its `build/example` FOLDER; nothing of what make exports is set, and of
the virtual environment only that it is active.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"```sh\n((?:(?!```).)*cmake -S examples/04.*?)```", re.DOTALL)
OURS = ("CUDA_HOME", "CUDACXX", "OPSCOPE_LIBRARY_DIR", "PYTHONPATH")


def main() -> None:
    root, build, folder = map(Path, sys.argv[1:])
    found = BLOCK.search((root / "README.md").read_text(encoding="utf-8"))
    assert found, "the README has no commands for example 04"
    commands = found[1].replace("build/example", str(folder)).replace("$PWD/build/dev", str(build))
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    environment["PATH"] = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    subprocess.run(["bash", "-ec", commands], cwd=root, env=environment, check=True)
    assert (folder / "module.json").is_file()


if __name__ == "__main__":
    main()
