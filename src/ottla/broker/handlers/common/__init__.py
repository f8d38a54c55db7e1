"""What handlers of several APIs share."""
