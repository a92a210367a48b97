# SPDX-License-Identifier: Apache-2.0
"""Programs that run under Nsight Compute, and the same under opscope, to be compared.

    python nsight_subjects.py ops               three calls of each op, and a user range
    python nsight_subjects.py block             a transformer block's step between profiler marks
    python nsight_subjects.py profile CAPTURE   the same step under opscope.profile(dram="ops")

`ops` and `block` start no session: Nsight Compute holds CUPTI there.
"""

import os
import sys

print("NVTX_INJECTION64_PATH at start:", os.environ.get("NVTX_INJECTION64_PATH"), flush=True)

import opscope  # noqa: E402
import torch  # noqa: E402
import training  # noqa: E402, beside this file

CALLS = 3
WARM_STEPS = 3


def run_ops() -> None:
    """Ops of ours, the builtin, a product, and a user range around two kernels of its own."""
    from opscope import ops

    x = torch.randn(1 << 20, device="cuda", requires_grad=True)
    plain = x.detach()
    square = plain.view(1024, 1024)
    grad = torch.ones_like(plain)
    for _ in range(CALLS):
        y = ops.gelu(x)
        ops.gelu_naive(plain)
        torch.nn.functional.gelu(plain)
        square @ square
        y.backward(grad)  # as it lies, so that no copy is launched within the op
    with opscope.range("attention"):
        torch.cos(plain)
        torch.sin(plain)
    torch.tan(plain)
    torch.cuda.synchronize()


def warm_block() -> training.Step:
    """A step that has run a few times, its memory and its modules in place."""
    step = training.transformer_block()
    for _ in range(WARM_STEPS):
        step.run()
    torch.cuda.synchronize()
    return step


def run_block() -> None:
    """One step between the marks that `--profile-from-start off` waits for."""
    step = warm_block()
    torch.cuda.profiler.start()
    step.run()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def profile_block(path: str) -> None:
    """The same step with the DRAM bytes of each op."""
    step = warm_block()
    with opscope.profile(path, dram="ops", shapes=True):
        step.run()
        torch.cuda.synchronize()


if __name__ == "__main__":
    if sys.argv[1] == "ops":
        run_ops()
    elif sys.argv[1] == "block":
        run_block()
    else:
        profile_block(sys.argv[2])
