"""A Dagster asset pipeline for AI-generated content that never pays or publishes twice."""

__version__ = "0.1.0"
