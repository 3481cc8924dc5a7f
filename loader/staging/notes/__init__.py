"""What runs and operators note about tables and intervals: pauses, quarantines, skips, refused loads, finished work."""
