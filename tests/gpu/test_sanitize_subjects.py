# SPDX-License-Identifier: Apache-2.0
"""What compute-sanitizer is shown is every kernel that there is."""

import subprocess

import machine_code
import opscope
import pytest
import sanitize_subjects

pytestmark = pytest.mark.gpu


def test_the_subjects_launch_every_kernel_of_the_operators() -> None:
    mangled = machine_code.kernels("opscope")
    demangle = ["c++filt", *mangled]
    names = subprocess.run(demangle, capture_output=True, text=True, check=True).stdout
    with opscope.profile(python="off") as p:
        sanitize_subjects.exercise("cuda")
    launched = {event["name"] for event in p.events() if event.get("cat") == "kernel"}
    assert set(names.splitlines()) - launched == set()
