"""Networks in ONNX files as players.  Nothing but standard operators runs, on the CPU and in one thread.

The first input takes float32 rows, scaled as the environments give them; a second one, if there is one, takes the mask.  The
name of the output tells what it holds: ``logits``, ``probabilities`` or action ``values``.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.archive import FilePolicy, note_file, version_of
from agents.ppo import masked_softmax
from agents.rows import checked_rows
from archie_env.errors import ArchieError, described, shown
from archie_env.observation import scaled, width
from archie_env.policy import Masks, Observations, Probabilities, StochasticPolicy
from archie_env.rules import Rules, as_rules

MOST_BYTES: Final = 1 << 28
"""Maximum size of a file."""
OUTPUTS: Final = ("logits", "probabilities", "values")
"""Names that an output may have; of action values the largest is played."""
DOMAINS: Final = ("", "ai.onnx", "ai.onnx.ml")
"""Sets of operators that the standard defines."""
REFUSED: Final = frozenset(
    {"Loop", "Scan", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""Operators that may run for ever, or that draw numbers which no seed of ours determines."""
_MASK_TYPES: Final[dict[str, type[np.generic]]] = {
    "tensor(bool)": np.bool_, "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(int32)": np.int32,
    "tensor(int64)": np.int64, "tensor(float)": np.float32,
}  # fmt: skip
_ROWS: Final = 4096
"""Decisions computed at a time."""


class OnnxPolicy(FilePolicy, StochasticPolicy):
    """Plays by a network in ONNX form.

    Logits and probabilities are restricted to legal actions and sampled from; of action values the largest legal one is played.

    Args:
        content: the bytes of the file.
        rules: the rules of the game; the network must have their observations and actions.

    Raises:
        ArchieError: for anything but a self-contained network of standard operators with such inputs and outputs.
    """

    name = "onnx"

    def __init__(self, content: bytes, rules: Rules | str = "archie") -> None:
        self.rules = as_rules(rules)
        self._content = content
        self._open()

    def _open(self) -> None:
        self._session = _session(self._content)
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        d, a = width(self.rules), self.rules.actions
        if len(inputs) not in (1, 2):
            raise ArchieError(f"{len(inputs)} inputs: expected the observations, and the mask if the network takes one")
        _check_shape("input", inputs[0], d, self.rules)
        if inputs[0].type != "tensor(float)":
            raise ArchieError(f"input {shown(inputs[0].name)} of {inputs[0].type}: expected float32")
        for mask in inputs[1:]:
            _check_shape("input", mask, a, self.rules)
            if mask.type not in _MASK_TYPES:
                raise ArchieError(f"input {shown(mask.name)} of {mask.type}: expected one of {', '.join(_MASK_TYPES)}")
        named = [output for output in outputs if output.name in OUTPUTS]
        if len(named) != 1:
            names = ", ".join(shown(output.name) for output in outputs)
            raise ArchieError(
                f"outputs {names}: expected exactly one named {', '.join(OUTPUTS)}, by which its meaning is known"
            )
        _check_shape("output", named[0], a, self.rules)
        if named[0].type != "tensor(float)":
            raise ArchieError(f"output {named[0].name!r} of {named[0].type}: expected float32")
        self._rows = inputs[0].name
        self._mask = {mask.name: _MASK_TYPES[mask.type] for mask in inputs[1:]}
        self._output = named[0].name

    def __getstate__(self) -> dict[str, Any]:
        """A session can't be pickled; it is opened again."""
        return {name: value for name, value in self.__dict__.items() if name != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def probabilities(self, observations: Observations, masks: Masks) -> Probabilities:
        """See `Policy.probabilities`; raises `ArchieError` for outputs that are no numbers or of another shape."""
        rows = checked_rows(observations, masks, self.rules)
        result = np.zeros(masks.shape, np.float32)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            self._fill(rows[part], masks[part] != 0, result[part])
        return result

    def _fill(self, rows: NDArray[np.int8], legal: NDArray[np.bool_], result: Probabilities) -> None:
        feeds = {self._rows: scaled(rows, self.rules)} | {name: legal.astype(kind) for name, kind in self._mask.items()}
        try:
            (found,) = self._session.run([self._output], feeds)
        except Exception as error:  # the runtime has a class of its own for each status
            raise ArchieError(
                f"the network failed: {described(error, place=False)}: expected it to take {len(rows)} rows"
            ) from None
        if not isinstance(found, np.ndarray) or found.shape != legal.shape or found.dtype != np.float32:
            shape = getattr(found, "shape", None)
            raise ArchieError(f"{self._output} of shape {shape}: expected {legal.shape}, a number for each action of each row")
        values = np.where(legal, found, np.float32(0))
        if not np.isfinite(values).all():
            row = int((~np.isfinite(values)).any(axis=1).argmax())
            raise ArchieError(f"{self._output}[{row}] are NaN or infinite: expected finite numbers for legal actions")
        if self._output == "logits":
            masked_softmax(values, np.zeros((len(rows), 0), np.int64), legal.astype(np.int8), result)
        elif self._output == "values":
            best = np.where(legal, values, -np.inf).argmax(axis=1)
            result[np.arange(len(best)), best] = 1
        else:
            total = values.astype(np.float64).sum(axis=1, keepdims=True)
            wrong = (values < 0).any(axis=1) | (values > 1.001).any(axis=1) | (total[:, 0] <= 0)
            if wrong.any():
                raise ArchieError(f"probabilities[{wrong.argmax()}]: expected 0 to 1, and more than 0 for some legal action")
            result[:] = values / total

    @classmethod
    def load(cls, path: str | Path, rules: Rules | str = "archie") -> OnnxPolicy:
        """Load a network from its file.

        Args:
            path: a file of at most `MOST_BYTES`, with all weights in it.
            rules: the rules of the game.

        Raises:
            ArchieError: naming the file, the part at fault and what was expected.
        """
        now = version_of(path)
        try:
            policy = cls(_read(Path(path)), rules)
        except ArchieError as error:
            raise ArchieError(f"{path}: {error}") from error.__cause__
        policy.name = f"onnx:{path}"
        note_file(policy, path, now)
        return policy


def _read(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ArchieError("not a file: expected a network in ONNX form")
        if status.st_size > MOST_BYTES:
            raise ArchieError(f"{status.st_size:,} bytes: expected at most {MOST_BYTES:,}")
        return path.read_bytes()
    except FileNotFoundError:
        raise ArchieError("no such file: expected a network in ONNX form") from None
    except (OSError, ValueError) as error:
        raise ArchieError(f"{described(error, place=False)}: expected a network in ONNX form") from None


def _session(content: bytes) -> Any:
    """Check the parts of a model and open it in the runtime."""
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise ArchieError(
            f"networks in ONNX form need onnxruntime ({error}): expected pip install 'archie-env[onnx]'"
        ) from error
    try:
        model = onnx.ModelProto.FromString(content)
    except Exception as error:
        raise ArchieError(f"{described(error, place=False)}: expected a network in ONNX form") from None
    opsets = [(entry.domain, entry.version) for entry in model.opset_import]
    for domain, version in opsets:
        if domain not in DOMAINS:
            raise ArchieError(f"operators of {shown(domain)} {version}: expected those of the standard alone, ai.onnx")
    _check_parts(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has a class of its own for each status
        wanted = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in opsets) or "none"
        fault = shown(str(error), 400)
        raise ArchieError(
            f"opset {wanted}: onnxruntime {onnxruntime.__version__} refuses it, {fault}: expected a network that it can run"
        ) from None


def _check_parts(model: Any) -> None:
    """Raise `ArchieError` for weights in other files and operators that are not played, subgraphs and functions included."""
    for part in _parts(model):
        kind = type(part).__name__
        if kind == "TensorProto" and (part.external_data or part.data_location):
            raise ArchieError(
                f"weights {shown(part.name)} lie in another file: expected all in one (torch.onnx.export: external_data=False)"
            )
        if kind == "NodeProto" and part.domain not in DOMAINS:
            raise ArchieError(
                f"operator {shown(part.op_type)} of {shown(part.domain)}: expected those of the standard, ai.onnx"
            )
        if kind == "NodeProto" and part.op_type in REFUSED:
            raise ArchieError(f"operator {part.op_type}: expected a network without loops and random numbers")


def _parts(message: Any) -> Iterator[Any]:
    """Every message within a message; protobuf has refused those nested more than a hundred deep."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                yield from _parts(part)


def _check_shape(what: str, tensor: Any, size: int, rules: Rules) -> None:
    """Raise `ArchieError` unless a tensor is declared as ``(n, size)``; both may be left open, and n must be."""
    shape = list(tensor.shape)
    if len(shape) != 2 or isinstance(shape[0], int) or (isinstance(shape[1], int) and shape[1] != size):
        raise ArchieError(
            f"{what} {shown(tensor.name)} of shape {shown(shape)}: "
            f"expected (n, {size}) under rules {rules.name!r}, with n left open"
        )
