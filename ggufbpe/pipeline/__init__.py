"""The steps from text to ids and back in the reference engine, each by itself, with the places in the text."""
