"""One folder per wire protocol; none imports another."""
