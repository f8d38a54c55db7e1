"""Coordinators: pure machines that decide, and the runtime that writes, replays, answers and keeps time."""
