# SPDX-License-Identifier: Apache-2.0
"""Compiles one .cu file as the program runs, calls its operator, compares it with the builtin.

The other route, ahead of time with CMake, is how opscope's own operators are built (kernels/torch).
Compiling takes under a minute and needs nvcc (CUDA_HOME), but no GPU; a second run reuses it.
"""

import os
from pathlib import Path

import torch
from torch.utils import cpp_extension


def main() -> None:
    # Unset, torch compiles for every architecture that it knows or for the GPU that is there.
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", "9.0")
    source = Path(__file__).with_name("my_gelu.cu")
    cpp_extension.load("my_gelu", [str(source)], is_python_module=False)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(1 << 20, device=device)
    error = torch.ops.my_gelu.gelu(x) - torch.nn.functional.gelu(x, approximate="tanh")
    print(f"my_gelu::gelu on {device}: largest difference {float(error.abs().max()):.1e}")
    if device == "cpu":
        print("no GPU here: the CUDA kernel was compiled, the CPU kernel was run")


if __name__ == "__main__":
    main()
