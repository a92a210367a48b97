# SPDX-License-Identifier: Apache-2.0
"""`opscope.compare` on the CPU, end to end: verdicts, what is recorded, and what is refused."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import opscope
import pytest
import torch
from torch.nn.functional import gelu

FAST = {"warmup": 2, "pairs": 5}
GELU_ON_ONE = {"candidate": gelu, "baseline": gelu, "inputs": torch.ones(1)}


def slow_gelu(x: torch.Tensor) -> torch.Tensor:
    for _ in range(5):
        gelu(x)
    return gelu(x)


def wrong_gelu(x: torch.Tensor) -> torch.Tensor:
    return gelu(x) + 0.01


def compare(candidate: Callable[..., Any], **options: Any) -> opscope.Receipt:
    inputs = options.pop("inputs", torch.randn(4096))
    return opscope.compare(candidate, gelu, inputs, **{**FAST, **options})


def contender(receipt: opscope.Receipt, index: int, cell: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = receipt.to_dict()["cells"][cell]["contenders"][index]
    return found


def test_a_slower_op_is_found_slower_and_its_baseline_is_the_baseline() -> None:
    receipt = compare(slow_gelu, pairs=50, inputs=torch.randn(1 << 16))
    assert receipt.to_dict()["schema"] == "opscope.receipt/1"
    assert receipt.to_dict()["device"] == "cpu"
    assert contender(receipt, 0)["verdict"] == "baseline"
    slower = contender(receipt, 1)
    assert slower["host_ratio"]["low"] > 1
    assert slower["verdict"] in ("slower", "unstable"), "others may hold the cores"
    assert contender(receipt, 1)["correct"] is True
    assert receipt.any_wrong is False


def test_a_wrong_op_is_wrong_however_fast() -> None:
    receipt = compare(wrong_gelu)
    assert contender(receipt, 1)["verdict"] == "wrong"
    found = contender(receipt, 1)
    assert found["max_abs_error"] == pytest.approx(0.01, rel=0.01)
    assert (found["rtol"], found["atol"], found["compared"]) == (1.3e-6, 1e-5, 4096)
    assert receipt.any_wrong is True


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_a_result_of_another_type_is_wrong_though_its_values_are_near(dtype: torch.dtype) -> None:
    receipt = compare(lambda x: gelu(x).to(dtype), inputs=torch.zeros(64))
    name = str(dtype).removeprefix("torch.")
    assert contender(receipt, 1)["verdict"] == "wrong"
    assert f"a result is {name}, not float32" in str(receipt)


def doubles_its_input(x: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return gelu(x / 2)


def shrinks_its_input(x: torch.Tensor) -> torch.Tensor:
    y = gelu(x)
    x.resize_(1)
    return y


def cuts_its_input(x: torch.Tensor) -> torch.Tensor:
    y = gelu(x)
    x.data = x.data[:1]
    return y


@pytest.mark.parametrize("candidate", [shrinks_its_input, cuts_its_input])
def test_a_candidate_that_gives_its_input_another_shape_is_wrong(candidate: Any) -> None:
    receipt = compare(candidate, inputs=torch.randn(8, 64))
    assert contender(receipt, 0)["correct"] is True
    assert contender(receipt, 1)["verdict"] == "wrong"
    assert "it changes its input" in str(receipt)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_candidate_that_changes_its_input_is_wrong_and_the_users_tensor_stays(
    dtype: torch.dtype,
) -> None:
    whole = torch.randn(8, 64, dtype=dtype)
    before = whole.clone()
    receipt = compare(doubles_its_input, inputs=whole[:, ::2])
    assert contender(receipt, 0)["correct"] is True
    assert contender(receipt, 1)["verdict"] == "wrong"
    assert "it changes its input" in str(receipt)
    assert torch.equal(whole, before)


def test_what_is_called_has_the_layout_of_what_was_given() -> None:
    seen = []

    def looks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        shared = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
        seen.append((x.shape, x.stride(), x.storage_offset(), y.stride(), shared))
        return x + y

    whole = torch.randn(8, 64)
    x, y = whole[1:, ::2], whole[0, :32].expand(7, 32)
    opscope.compare(looks, torch.add, (x, y), **FAST)
    assert set(seen) == {(x.shape, x.stride(), x.storage_offset(), y.stride(), True)}


def test_a_reference_judges_both() -> None:
    receipt = compare(slow_gelu, reference=lambda x: gelu(x) + 1)
    assert contender(receipt, 0)["correct"] is False
    assert contender(receipt, 1)["correct"] is False


def test_every_call_of_the_timeline_is_joined_to_its_op() -> None:
    receipt = compare(gelu)
    for index in (0, 1):
        links = contender(receipt, index)["links"]
        assert links["calls"] == 20
        assert links["without_op"] == 0


def test_labels_name_the_rows_and_plain_sizes_become_shapes() -> None:
    receipt = compare(gelu, inputs={16: torch.randn(16), "wide": torch.randn(2, 8).bfloat16()})
    cells = receipt.to_dict()["cells"]
    assert [cell["label"] for cell in cells] == ["16 fp32", "wide"]
    assert cells[1]["shape"] == [2, 8]
    assert cells[1]["dtype"] == "bfloat16"
    assert cells[1]["read_bytes_ideal"] == cells[1]["write_bytes_ideal"] == 32


def test_several_candidates_against_one_baseline() -> None:
    receipt = opscope.compare(
        candidates={"slow": slow_gelu, "again": gelu},
        baseline=gelu,
        inputs=torch.randn(256),
        **FAST,
    )
    assert receipt.to_dict()["contenders"] == ["torch.nn.functional.gelu", "slow", "again"]


def test_a_partial_is_called_as_its_function() -> None:
    receipt = opscope.compare(
        functools.partial(gelu, approximate="tanh"),
        functools.partial(gelu, approximate="tanh"),
        torch.randn(256),
        **FAST,
    )
    assert contender(receipt, 1)["correct"] is True
    assert receipt.to_dict()["contenders"][0] == "torch.nn.functional.gelu"


def test_backward_checks_gradients_too() -> None:
    class Crooked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return gelu(x)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    assert contender(compare(Crooked.apply), 1)["correct"] is True
    receipt = compare(Crooked.apply, backward=True)
    assert contender(receipt, 1)["correct"] is False
    cell = receipt.to_dict()["cells"][0]
    assert cell["backward"] is True
    assert (cell["read_bytes_ideal"], cell["write_bytes_ideal"]) == (3 * 16384, 2 * 16384)


def test_saved_printed_and_exported(tmp_path: Path) -> None:
    receipt = compare(gelu, output=tmp_path / "a.opscope")
    assert receipt.path == tmp_path / "a.opscope"
    saved = json.loads(receipt.save(tmp_path / "a.json").read_text())
    assert saved == receipt.to_dict()
    assert max(map(len, str(receipt).splitlines())) <= 80
    trace = json.loads(receipt.export(tmp_path / "a.trace.json").read_text())
    assert any(event["name"] == "aten::gelu" for event in trace["traceEvents"])
    with pytest.raises(opscope.Error, match="exists"):
        receipt.save(tmp_path / "a.json")


def test_a_receipt_is_recomputed_from_its_capture_alone(tmp_path: Path) -> None:
    receipt = compare(gelu, output=tmp_path / "a.opscope")
    moved = (tmp_path / "a.opscope").rename(tmp_path / "b.opscope")
    assert opscope.Receipt(moved).to_dict()["cells"] == receipt.to_dict()["cells"]


def test_an_exception_of_a_candidate_passes_and_a_profile_can_follow() -> None:
    calls = []

    def breaks(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) > 12:  # under the timeline
            raise LookupError("mine")
        return gelu(x)

    with pytest.raises(LookupError, match="mine"):
        compare(breaks)
    with opscope.profile() as p:
        gelu(torch.randn(4))
    assert p.verify()["verdict"] == "complete"


def waits_for_the_gpu(x: torch.Tensor) -> torch.Tensor:
    """Draws, then copies to the host: the second ends a capture with an error."""
    drawn = torch.rand_like(x)
    float(drawn[0])
    return gelu(x)


def leaves_a_stream_behind(x: torch.Tensor) -> torch.Tensor:
    """Forks to another stream, and joins it unless that is captured."""
    here, there = torch.cuda.current_stream(), torch.cuda.Stream()
    there.wait_stream(here)
    with torch.cuda.stream(there):
        result = gelu(x)
    if torch.cuda.is_current_stream_capturing():
        return gelu(x)
    here.wait_stream(there)
    return result


def raises_while_captured(x: torch.Tensor) -> torch.Tensor:
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("not in a graph")
    return gelu(x)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "candidate", [waits_for_the_gpu, leaves_a_stream_behind, raises_while_captured]
)
def test_a_call_that_no_graph_can_hold_leaves_torch_as_it_was(
    candidate: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x = torch.randn(1 << 20, device="cuda")
    reserved = []
    for _ in range(2):
        replay = contender(compare(candidate, inputs=x), 1)["graph_replay"]
        assert replay["median_ns"] is None
        assert replay["not_measured"]
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[0] == reserved[1], "a capture's memory pool was kept"
    torch.rand(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        drawn = torch.rand(8, device="cuda")
    graph.replay()
    assert float(drawn.sum()) > 0


def test_a_comparison_inside_a_profile_is_refused() -> None:
    with opscope.profile(), pytest.raises(opscope.Error, match="profile is on"):
        compare(gelu)


def test_an_existing_output_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.opscope").write_text("mine")
    with pytest.raises(opscope.Error, match="exists"):
        compare(gelu, output=tmp_path / "a.opscope")
    assert (tmp_path / "a.opscope").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"baseline": gelu, "inputs": torch.ones(1)}, TypeError),
        ({"candidate": gelu, "inputs": torch.ones(1)}, TypeError),
        ({"candidate": 3, "baseline": gelu, "inputs": torch.ones(1)}, TypeError),
        ({"candidate": gelu, "baseline": gelu, "inputs": {}}, ValueError),
        ({"candidate": gelu, "baseline": gelu, "inputs": [1, 2]}, TypeError),
        ({"candidate": gelu, "baseline": gelu, "inputs": torch.ones(1), "pairs": 1}, ValueError),
        ({"candidates": {}, "baseline": gelu, "inputs": torch.ones(1)}, ValueError),
        ({"candidate": gelu, "baseline": gelu, "inputs": torch.eye(2).to_sparse()}, TypeError),
        ({**GELU_ON_ONE, "backward": "no"}, TypeError),
        ({**GELU_ON_ONE, "strict": 1}, TypeError),
        ({**GELU_ON_ONE, "pairs": 4.5}, TypeError),
        ({**GELU_ON_ONE, "pairs": 2**32}, ValueError),
        ({**GELU_ON_ONE, "warmup": "a"}, TypeError),
        ({**GELU_ON_ONE, "budget": "long"}, TypeError),
        ({**GELU_ON_ONE, "budget": float("nan")}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^compare: [^\n]*$"):
        opscope.compare(**arguments)
