"""Where pages are published: one module per kind of content management system."""
