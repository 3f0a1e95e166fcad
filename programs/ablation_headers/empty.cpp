// A target has a source; this one is there for its precompiled header.
