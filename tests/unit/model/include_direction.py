# SPDX-License-Identifier: Apache-2.0
"""The folders of profiler/src are stages: each may include itself and earlier stages only."""

import re
import sys
from pathlib import Path

# What each folder of profiler/src may include besides itself and `opscope/` (the public headers).
EARLIER = {
    "model": set(),
    "capture": {"model"},
    "collect": {"model", "capture"},
    "cupti": {"model", "collect"},
    "nvtx": {"model", "collect"},
    "torch": {"model", "collect"},
    "correlate": {"model", "capture"},
    "analyse": {"model", "capture", "correlate"},
    "export": {"model", "capture", "correlate", "analyse"},
    "profile": {"model", "capture", "collect", "export"},
    "compare": {"model", "capture", "collect", "correlate", "analyse"},
    "python": {"model", "capture", "collect", "correlate", "analyse", "export", "compare"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def violations(source: Path) -> list[str]:
    """Every include of profiler/src that goes against the direction of the pipeline."""
    found = []
    for path in sorted(source.rglob("*.[hc]*")):
        stage = path.relative_to(source).parts[0]
        if stage not in EARLIER or path.suffix not in {".h", ".hpp", ".cpp", ".c"}:
            continue
        for quote, target in INCLUDE.findall(path.read_text()):
            folder = target.split("/")[0]
            if quote == '"' and folder in EARLIER and folder not in EARLIER[stage] | {stage}:
                found.append(f"{path}: {stage} includes {target}")
            if Path(target).name.startswith("cupti") and quote == "<" and stage != "cupti":
                found.append(f"{path}: only cupti includes {target}")
    return found


def public_violations(include: Path) -> list[str]:
    """Public headers must not need CUPTI, the driver, NVTX or torch."""
    foreign = re.compile(r"^(cupti|cuda|nvtx3|torch|ATen|c10|nlohmann|fmt|model|collect|capture)")
    return [
        f"{path}: a public header includes {target}"
        for path in sorted(include.rglob("*.hpp"))
        for _, target in INCLUDE.findall(path.read_text())
        if foreign.match(target)
    ]


def main() -> int:
    """Prints the violations; 1 when there are any."""
    profiler = Path(sys.argv[1])
    found = violations(profiler / "src") + public_violations(profiler / "include")
    print("\n".join(found) or "every include goes with the pipeline")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
