"""Ways to carry bytes: they frame, buffer and identify, and know nothing of what is said."""
