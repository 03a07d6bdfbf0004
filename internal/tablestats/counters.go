package tablestats

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/messaginginbox/operator/internal/database"
	"github.com/messaginginbox/operator/internal/dbschema"
)

// Counters is what PostgreSQL's cumulative statistics say of the table at one moment.
// A session reports to them up to a second late, at the latest when it ends. Partitions
// are summed up. All of it lives in shared memory: no record is read, and the unique
// index, whose counters tell of redeliveries, is not used.
type Counters struct {
	// Clock is the database's own.
	Clock time.Time `json:"clock"`
	// Table and Index are the oids of the table and of its unique index; the counters
	// of another table or index start again.
	Table uint32 `json:"table"`
	Index uint32 `json:"index"`
	// StatsReset is when somebody reset the database's statistics; nil: never.
	StatsReset *time.Time `json:"statsReset"`
	// Inserted, Updated and Deleted rows, also those of transactions that were rolled back.
	Inserted int64 `json:"inserted"`
	Updated  int64 `json:"updated"`
	Deleted  int64 `json:"deleted"`
	// Live and Dead rows: exact between two recounts, an estimate after one.
	Live int64 `json:"live"`
	Dead int64 `json:"dead"`
	// Recounts is the number of vacuums and analyzes, each of which estimates Live anew.
	Recounts int64 `json:"recounts"`
	// IndexScans of the unique index, and the entries that they found.
	IndexScans int64 `json:"indexScans"`
	IndexReads int64 `json:"indexReads"`
	// LastVacuum is the end of the last vacuum, by hand or automatic; nil: none is known.
	// Of partitions the one that waits longest counts.
	LastVacuum *time.Time `json:"lastVacuum"`
	// HeapBytes is the size of the table without its indexes, IndexBytes that of its indexes.
	HeapBytes  int64 `json:"heapBytes"`
	IndexBytes int64 `json:"indexBytes"`
	// Indexes of the table by name. One that only a partition has is in IndexBytes alone.
	Indexes []IndexSize `json:"indexes"`
	// NeededHeapBytes is what the live rows would need in a table just written, by their
	// average width; nil before the first ANALYZE.
	NeededHeapBytes *int64 `json:"neededHeapBytes"`
}

// IndexSize is the size of one index, its partitions summed up.
type IndexSize struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Bloat is the part of the table, without its indexes, that holds no live row: an
// estimate in bytes. Nil when it is not known.
func (c Counters) Bloat() *int64 {
	if c.NeededHeapBytes == nil {
		return nil
	}
	bloat := max(0, c.HeapBytes-*c.NeededHeapBytes)
	return &bloat
}

//go:embed counters.sql
var countersSQL string

// ReadCounters reads the statistics. It needs no privilege beyond a connection, and
// waits behind an exclusive lock on the table. Errors are PostgreSQL's, wrapped.
func ReadCounters(ctx context.Context, q database.Querier, contract dbschema.Contract, observed dbschema.Observed) (Counters, error) {
	key, _ := observed.UniqueKey(contract)
	var encoded []byte
	if err := q.QueryRow(ctx, countersSQL, observed.OID, key.Name).Scan(&encoded); err != nil {
		return Counters{}, fmt.Errorf("reading the statistics of %s.%s: %w", contract.Schema, contract.Table, err)
	}
	var counters Counters
	if err := json.Unmarshal(encoded, &counters); err != nil {
		return Counters{}, fmt.Errorf("reading the statistics of %s.%s: %w", contract.Schema, contract.Table, err)
	}
	return counters, nil
}
