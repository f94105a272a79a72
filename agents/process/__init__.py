"""Players in processes of their own, in any language: ``bot:COMMAND``."""

from agents.process.command import Clock, program_hash
from agents.process.policy import Bot, BotPlayer, BotPolicy, load_bot

__all__ = ["Bot", "BotPlayer", "BotPolicy", "Clock", "load_bot", "program_hash"]
