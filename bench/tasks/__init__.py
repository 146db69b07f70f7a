"""Small repositories with a failing test: whether the tools lead a model to the fix."""
