package tablestats

// interval is what happened to the table between two looks.
type interval struct {
	// known is false when the statistics began anew in between: a reset, a crash, another table.
	known bool
	// inserted, updated and deleted rows, also those that were rolled back.
	inserted, updated, deleted int64
	// added rows were inserted and committed; without a recount in between exactly.
	added int64
	// undone rows were inserted and left no live row: a handler that was rolled back, or
	// an insert that the unique key refused. 0 when a recount makes it unknowable.
	undone int64
	// scans of the unique index, and the entries that they found.
	scans, reads int64
}

func between(before, after Counters) interval {
	if before.Table != after.Table || !sameInstant(before.StatsReset, after.StatsReset) ||
		after.Inserted < before.Inserted || after.Updated < before.Updated || after.Deleted < before.Deleted || after.Recounts < before.Recounts {
		return interval{}
	}
	i := interval{
		known:    true,
		inserted: after.Inserted - before.Inserted,
		updated:  after.Updated - before.Updated,
		deleted:  after.Deleted - before.Deleted,
	}
	i.added = i.inserted
	if before.Recounts == after.Recounts {
		i.added = min(max(after.Live-before.Live+i.deleted, 0), i.inserted)
		i.undone = i.inserted - i.added
	}
	if before.Index == after.Index && after.IndexScans >= before.IndexScans && after.IndexReads >= before.IndexReads {
		i.scans, i.reads = after.IndexScans-before.IndexScans, after.IndexReads-before.IndexReads
	}
	return i
}

// skips estimates how many redeliveries found their proof and were skipped.
//
// A consumer that selects first, or inserts with ON CONFLICT DO NOTHING, looks into the
// unique index for every message and finds an entry only for a redelivery: the entries
// found are the skips. What a rolled-back handler inserted is still found by its retry
// until a vacuum, so the rollbacks are subtracted: the carried ones of the interval
// before, since a retry can follow in the next, and this interval's.
//
// A consumer that inserts and relies on the unique violation never scans the index; a
// refused insert leaves a dead row, as does a rolled-back handler, so this is an upper
// bound. It counts only as far as there were more inserts than scans.
func (i interval) skips(carried int64) (skips, carry int64) {
	refused := min(i.undone, max(0, i.inserted-i.scans))
	rolledBack := i.undone - refused
	spurious := min(i.reads, rolledBack+carried)
	return refused + i.reads - spurious, min(rolledBack, rolledBack+carried-spurious)
}
