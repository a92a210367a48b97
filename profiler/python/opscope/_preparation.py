# SPDX-License-Identifier: Apache-2.0
"""A cell before it is timed: copies of its inputs, every contender's correctness, the calls."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from opscope._contenders import Cell, Contender, Settings
from opscope._copies import Copies
from opscope._correctness import agreement, expectation, tensors_of
from opscope._errors import Error, one_line


class Prepared:
    """A cell's calls on copies of its inputs, and what is wrong with them.

    `calls` has each as (function, arguments, keywords), `description` the cell as a comparison's
    document has it.
    """

    def __init__(self, contenders: Sequence[Contender], cell: Cell, settings: Settings) -> None:
        self._given = contenders, cell, settings
        self._outputs: list[torch.Tensor] = []
        self.calls: list[Any] = []
        if cell.skipped is not None:
            self.description = describe(cell, [], settings.backward)
            return
        self._copies = Copies(cell.arguments, settings.backward)
        arguments = self._copies.arguments
        if settings.backward and not any(each.requires_grad for each in tensors_of(arguments)):
            raise Error(
                f"compare: {cell.label} has no gradient: no input is floating "
                "(give one that is, or measure without backward)"
            )
        for each in contenders:
            call = _call_of(each.function, arguments, dict(each.keywords), settings.backward)
            self.calls.append(call)
        judged = self._judge()
        self.description = describe(cell, self._outputs, settings.backward)
        self.description["contenders"] = judged

    def judge_again(self) -> None:
        """Of an op that is wrong now, though its first call was right, the description says so.

        Two calls in a row: one alone may be the right one of an op that is wrong every other time.
        """
        self._copies.restore()
        first = self.description["contenders"]
        for index, then in enumerate(self._judge(calls=2)):
            if first[index]["correct"] and not then["correct"]:
                first[index] = {**then, "why": f"after the timed calls: {then['why']}"}

    def _judge(self, calls: int = 1) -> list[dict[str, Any]]:
        """Calls each contender so many times in a row; the first result that is wrong counts."""
        contenders, cell, settings = self._given
        results = []
        wanted: dict[int, Wanted] = {}
        for index, contender in enumerate(contenders):
            judge = contenders[contender.baseline]
            if contender.baseline not in wanted:
                with _Named(judge, cell, settings):
                    wanted[contender.baseline] = Wanted(judge, self._copies, settings)
            for _ in range(calls):
                result = self._judge_call(index, wanted[contender.baseline])
                if not result["correct"]:
                    break
            results.append({"contender": index, **result})
        return results

    def _judge_call(self, index: int, wanted: "Wanted") -> dict[str, Any]:
        contenders, cell, settings = self._given
        function, arguments, keywords = self.calls[index]
        with _Named(contenders[index], cell, settings):
            actual = tensors_of(function(*arguments, **keywords))
        result = wanted.agreement(actual)
        if self._copies.restore():
            result = {**result, "correct": False, "why": "it changes its input"}
        self._outputs = self._outputs or [each.to("meta") for each in actual]
        return result


class Wanted:
    """What a baseline's contenders must return: values on float64 inputs, types on the inputs."""

    def __init__(self, judge: Contender, copies: Copies, settings: Settings) -> None:
        given = (copies.arguments, dict(judge.keywords), settings.backward)
        function, arguments, keywords = _call_of(judge.function, *given)
        self._types = [each.dtype for each in tensors_of(function(*arguments, **keywords))]
        copies.restore()
        if settings.reference:
            given = (copies.arguments, {}, settings.backward)
            function, arguments, keywords = _call_of(settings.reference, *given)
        self._values, self._remark = expectation(function, arguments, keywords)
        copies.restore()

    def agreement(self, actual: list[torch.Tensor]) -> dict[str, Any]:
        """As a comparison's document has it."""
        return agreement(actual, self._values, self._remark, self._types)


class _Named:
    """Says which contender raised, and on what, where a program's user sees the message alone."""

    def __init__(self, contender: Contender, cell: Cell, settings: Settings) -> None:
        self._call = contender, cell
        self._wanted = settings.named

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if not self._wanted or isinstance(failure, torch.cuda.OutOfMemoryError):
            return
        if isinstance(failure, (Exception, SystemExit)):
            raise naming(*self._call, failure) from failure


def naming(
    contender: Contender, cell: Cell, failure: BaseException, kept: Path | None = None
) -> Error:
    """What a contender raised on a cell's input.

    Args:
        kept: the capture, which has what was recorded before.
    """
    advice = "call it alone to see where"
    if kept is not None:
        advice += f"; what was recorded before is in {kept}"
    return Error(f"call {contender.name} on {cell.label}: {one_line(failure)} ({advice})")


class ForwardBackward:
    """A call and, of its result, the gradients of the floating inputs."""

    def __init__(self, function: Callable[..., Any], keywords: Mapping[str, Any]) -> None:
        self._function = function
        self._keywords = keywords
        self._gradients: dict[torch.dtype, list[torch.Tensor]] = {}

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        outputs = tensors_of(self._function(*arguments, **self._keywords))
        gradients = self._gradients.get(outputs[0].dtype)
        if gradients is None:  # once for the inputs' type, once for the reference's float64
            gradients = [torch.ones_like(each) for each in outputs]
            self._gradients[outputs[0].dtype] = gradients
        inputs = [each for each in tensors_of(arguments) if each.requires_grad]
        return (*outputs, *torch.autograd.grad(outputs, inputs, gradients))


def _call_of(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    backward: bool,
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    if not backward:
        return function, arguments, keywords
    return ForwardBackward(function, keywords), arguments, {}


def describe(cell: Cell, outputs: list[torch.Tensor], backward: bool) -> dict[str, Any]:
    """A cell as the comparison's document has it, before its contenders."""
    tensors = tensors_of(cell.arguments)
    read = _bytes_of(tensors)
    write = _bytes_of(outputs)
    if backward:  # reads the inputs again and the output's gradient; `outputs` has the gradients
        gradients = _bytes_of([each for each in tensors if each.is_floating_point()])
        read = 2 * read + write - gradients
    return {
        "label": cell.label,
        "shape": list(tensors[0].shape) if tensors else [],
        "dtype": str(tensors[0].dtype).removeprefix("torch.") if tensors else "",
        "elements": tensors[0].numel() if tensors else cell.elements,
        "read_bytes_ideal": read,
        "write_bytes_ideal": write,
        "backward": backward,
        "skipped": cell.skipped,
        "contenders": [],
    }


def _bytes_of(tensors: Sequence[torch.Tensor]) -> int:
    """Of distinct tensors: one that is passed twice is read once."""
    distinct = {id(each): each for each in tensors}
    return sum(each.numel() * each.element_size() for each in distinct.values())
