"""HTTP, for everything that speaks it: one small server, started the same way everywhere.

`address` and `limits` are light, for whoever reads options and settings; `server`, `thread` and `application` are for
whoever serves. What costs time to import (Starlette, uvicorn) is imported when a listener starts, not before.
"""
