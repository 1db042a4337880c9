//! The relay envelope and its capability tokens.
