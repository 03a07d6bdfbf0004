package tablestats

// Round keeps the two leading digits of a positive number, so that a status which shows
// it does not change with every record.
func Round(n int64) int64 {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	if n > (1<<63-1)-unit {
		return n / unit * unit
	}
	return (n + unit/2) / unit * unit
}
