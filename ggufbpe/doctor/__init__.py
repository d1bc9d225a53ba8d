"""What is wrong or suspicious in a model's metadata, and how to mend it."""
