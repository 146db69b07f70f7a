"""Prompts that run by themselves: at a moment, at intervals, or by a cron expression."""
