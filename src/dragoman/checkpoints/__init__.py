"""What was in files before a turn changed them: kept in our own data folder, never in a .git."""
