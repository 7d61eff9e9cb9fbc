"""The Spark pipeline."""
