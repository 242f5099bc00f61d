"""Tables and figures of the papers beside those of abut."""
