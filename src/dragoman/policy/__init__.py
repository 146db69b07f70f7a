"""What an agent may do: autonomy, paths, commands."""
