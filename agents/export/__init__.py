"""Players as networks in ONNX form: ``python -m agents.export ppo ppo.onnx``."""

from agents.export.graph import to_onnx

__all__ = ["to_onnx"]
