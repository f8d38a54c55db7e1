"""The registry's REST API: paths in `routes`, what each does in a module per noun."""
