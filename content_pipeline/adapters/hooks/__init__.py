"""What is told after pages of a site changed: one module per kind of listener."""
