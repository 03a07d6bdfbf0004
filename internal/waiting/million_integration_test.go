//go:build integration

package waiting

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/probe"
)

// longID fills up an id to the widest that the column of an inbox takes.
var longID = strings.Repeat("x", 255-7)

// A million messages wait, with ids as long as Symfony's column is wide: what one run holds
// of them fits into the 128 MiB that a Job may take.
func TestAMillionMessagesAreReadUpToTheLimit(t *testing.T) {
	inTable, conn := table(t)
	// The id has the width of the number, so that all are as long.
	if _, err := conn.Exec(t.Context(), `INSERT INTO messenger_messages (headers, body, queue_name)
		SELECT format($1, $2 || to_char(n, 'FM0000000')), '{}', 'failed' FROM generate_series(1, 1000000) n`, stamped, longID); err != nil {
		t.Fatal(err)
	}
	inStream, client := stream(t)
	before, behind, _ := strings.Cut(`{"body":"{}","headers":`+fmt.Sprintf(stamped, longID+"NUMBER")+`}`, "NUMBER")
	const fill = `for i = 1, 1000000 do redis.call('XADD', KEYS[1], '*', 'message', ARGV[1] .. string.format('%07d', i) .. ARGV[2]) end`
	if err := client.WithTimeout(time.Minute).Eval(t.Context(), fill, []string{"failed"}, before, behind).Err(); err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	for name, target := range map[string]probe.Target{"doctrine": inTable, "redis": inStream} {
		t.Run(name, func(t *testing.T) {
			messages := boundedRead(t, target)
			if len(messages.IDs) != Limit+1 || messages.Exceeded != "failed" || len(messages.IDs[0]) != 255 {
				t.Errorf("%d ids, exceeded %q, want %d, which is one more than the limit", len(messages.IDs), messages.Exceeded, Limit+1)
			}
		})
	}
}

func TestLargeMessagesAreReadFewAtATime(t *testing.T) {
	target, client := stream(t)
	body := strings.Repeat("x", 500_000)
	for n := range 100 {
		message := `{"body":"` + body + `","headers":` + fmt.Sprintf(stamped, fmt.Sprint(n)) + `}`
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "failed", Values: []any{"message", message}}).Err(); err != nil {
			t.Fatal(err)
		}
		delayed := redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: strings.Replace(message, `"id\":\"`, `"id\":\"later `, 1)}
		if err := client.ZAdd(t.Context(), "failed__queue", delayed).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if messages := boundedRead(t, target); len(messages.IDs) != 200 || messages.Exceeded != "" {
		t.Errorf("%d ids, exceeded %q, want all 200", len(messages.IDs), messages.Exceeded)
	}
}

// boundedRead expects that reading takes no longer than a minute, and no more than 80 MiB of
// memory at any time, garbage included.
func boundedRead(t *testing.T, target probe.Target) Messages {
	t.Helper()
	runtime.GC()
	before, done, highest := heap(), make(chan struct{}), make(chan uint64)
	go func() {
		most := before
		for {
			select {
			case <-done:
				highest <- most
				return
			case <-time.After(time.Millisecond):
				most = max(most, heap())
			}
		}
	}()
	started := time.Now()
	messages, err := Read(t.Context(), []probe.Target{target}, Limit)
	took := time.Since(started)
	close(done)
	used := <-highest - before
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, at most %d MiB", took.Round(time.Millisecond), used>>20)
	if took > time.Minute || used > 80<<20 {
		t.Errorf("took %s and %d bytes at once, want a minute and 80 MiB at most", took, used)
	}
	return messages
}

// heap is the memory for Go's objects, those that are no longer used included, in bytes.
func heap() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64()
}
