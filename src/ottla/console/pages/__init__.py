"""What is shown and done, a module for each noun: views that make documents, for a page and for JSON alike."""
