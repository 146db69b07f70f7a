"""`dragoman` in a terminal: conversation, approvals and the board of all sessions.

Everything comes from the daemon through `dragoman.client`. Textual is imported here and nowhere
else, and only when a terminal is opened.
"""
