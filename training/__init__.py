"""Trainers: `python -m training.ppo --config configs/ppo/smoke.toml`."""
