"""The console for programs: its description, made from the table of routes."""
