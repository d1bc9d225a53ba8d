"""The container: reading its metadata, changing it, and the types of its keys; not what tokens mean."""
