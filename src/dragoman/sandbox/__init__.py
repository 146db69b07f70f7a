"""Walls around what tools run: Landlock, bubblewrap, or none."""
