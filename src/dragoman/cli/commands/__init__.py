"""What every command is called, takes and shows in its help; one module per group."""
