"""Events, fold, closings and lists. Pure: no AWS, no clock, no I/O."""
