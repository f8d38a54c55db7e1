"""Servers on this machine: started, stopped, looked at."""
