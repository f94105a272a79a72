"""Players in processes of their own, in any language: ``bot:COMMAND``."""

from agents.process.command import Clock, program_hash
from agents.process.policy import Bot, BotPolicy, StochasticBotPolicy, load_bot

__all__ = ["Bot", "BotPolicy", "Clock", "StochasticBotPolicy", "load_bot", "program_hash"]
