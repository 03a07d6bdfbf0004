package probe

import (
	"context"
	"iter"

	"github.com/redis/go-redis/v9"
)

const (
	// largestPage is how many messages one command returns at most: redis serves nobody
	// else meanwhile.
	largestPage = 200
	// pageBytes is what a page may hold, as far as the messages before it tell: all of a
	// page is in memory at once.
	pageBytes = 1 << 20
)

// Pages says how many messages to fetch at once: one at first, then more as long as the
// largest so far would not fill the memory that a page may take.
type Pages struct{ size, largest int }

// Next is the size of the next page.
func (p *Pages) Next() int64 {
	p.size = max(min(max(4*p.size, 1), largestPage, pageBytes/max(p.largest, 1)), 1)
	return int64(p.size)
}

// Saw tells of the size of a message in bytes.
func (p *Pages) Saw(bytes int) { p.largest = max(p.largest, bytes) }

// Entries are those of a stream from start to end, as XRANGE takes them. After an error
// there are no more.
func Entries(ctx context.Context, client redis.UniversalClient, stream, start, end string) iter.Seq2[redis.XMessage, error] {
	return func(yield func(redis.XMessage, error) bool) {
		pages := &Pages{}
		for {
			size := pages.Next()
			entries, err := client.XRangeN(ctx, stream, start, end, size).Result()
			if err != nil {
				yield(redis.XMessage{}, err)
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
				pages.Saw(sizeOf(entry))
				start = "(" + entry.ID
			}
			if int64(len(entries)) < size {
				return
			}
		}
	}
}

// sizeOf is the length of all fields and values of an entry.
func sizeOf(entry redis.XMessage) int {
	size := 0
	for field, value := range entry.Values {
		text, _ := value.(string) // redis has no other values in a stream
		size += len(field) + len(text)
	}
	return size
}
