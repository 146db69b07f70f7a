"""What an agent can do: files, commands, searches, questions, plans."""
