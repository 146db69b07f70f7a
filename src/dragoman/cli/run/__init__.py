"""`dragoman run`: one turn in the terminal."""
