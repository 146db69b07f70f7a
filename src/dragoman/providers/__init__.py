"""Ways to a model: stream readers, the catalogue, and the providers that need no network."""
