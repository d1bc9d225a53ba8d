"""The steps from text to ids and back in the reference engine, and where texts can be cut."""
