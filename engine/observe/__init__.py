"""What an engine tells about itself."""
