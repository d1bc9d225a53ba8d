"""Remote model files, of which only the metadata is downloaded."""
