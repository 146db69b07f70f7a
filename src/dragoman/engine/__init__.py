"""The domain: sessions, turns, events, approvals, hooks. Imports nothing of ours but itself."""
