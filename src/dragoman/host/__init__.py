"""Puts a host together: settings, store, models, agents and engine become one."""
