"""Networks of any library as players, by way of ONNX files."""

from agents.onnx.policy import OnnxPolicy

__all__ = ["OnnxPolicy"]
