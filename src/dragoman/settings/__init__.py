"""The configuration: its model, how it is loaded, written and explained."""
