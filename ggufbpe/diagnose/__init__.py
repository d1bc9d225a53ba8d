"""Why ids from elsewhere are not those of a model."""
