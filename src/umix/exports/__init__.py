"""Trained models for use elsewhere: ONNX, torch.export, a plain state dict, MLflow, and a model card."""
