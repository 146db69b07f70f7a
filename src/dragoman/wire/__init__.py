"""What all dialects share below their own words: framing, codecs, envelopes. No I/O here."""
