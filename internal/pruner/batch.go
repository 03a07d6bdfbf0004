package pruner

import "time"

const (
	// slowSlice is the duration from which the next slices are smaller. It leaves room
	// below the 250 ms that no transaction should exceed.
	slowSlice = 120 * time.Millisecond
	// quickSlice is the duration up to which the next slices may be larger.
	quickSlice = 60 * time.Millisecond
	// firstBatch is where a run starts: how fast the storage is shows only then.
	firstBatch = 1000
)

// batch adapts the number of records per transaction to what the database can do.
type batch struct {
	size, limit int
}

func newBatch(limit int) *batch {
	return &batch{size: min(firstBatch, limit), limit: limit}
}

// succeeded adapts the size to the duration of a slice.
func (b *batch) succeeded(took time.Duration) {
	switch {
	case took > slowSlice:
		b.size = max(int(int64(b.size)*int64(quickSlice)/int64(took)), 1)
	case took < quickSlice:
		b.size = min(b.size*2, b.limit)
	}
}

// failed makes the next slice so small that the cause is soon cornered.
func (b *batch) failed() {
	b.size = max(b.size/8, 1)
}

// smallest says whether a smaller slice is not possible.
func (b *batch) smallest() bool { return b.size == 1 }
