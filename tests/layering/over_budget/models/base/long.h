// Two lines,
// and a third:
// one too many.
