package drill

import "context"

// recordIsKept stores a record, and on the inbox's own connection deletes it, in a
// transaction that is rolled back. Deferred triggers fire within it.
func (d *drilled) recordIsKept(ctx context.Context) (string, error) {
	if err := d.first.record(ctx, proofID); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if _, err := d.first.tx.Exec(ctx, `SET CONSTRAINTS ALL IMMEDIATE`); err != nil {
		return "", d.run.refusal(err)
	}
	count, err := d.run.table.records(ctx, d.first.tx, proofID)
	if err != nil {
		return "", err
	}
	if count != 1 {
		return "", violated(ReasonInsertSwallowed, "the INSERT reported 1 row, and %d are there under its transport and id: %s", count, d.run.suspects())
	}
	if err = d.timeIsKept(ctx); err != nil {
		return "", err
	}
	if !d.mayDelete {
		return "it was there", nil
	}
	tag, err := d.first.tx.Exec(ctx, d.run.table.remove, TransportName, allMessageIDs)
	if err != nil {
		return "", err
	}
	if count, err = d.run.table.records(ctx, d.first.tx, proofID); err != nil {
		return "", err
	}
	if count != 0 {
		return "", violated(ReasonDeleteSwallowed, "a DELETE reported %d rows and left the record, so that expired proofs would stay, and a drill's: %s", tag.RowsAffected(), d.run.suspects())
	}
	return "it was there, and a DELETE removed it", nil
}

// timeIsKept compares the time of the record, by which it is pruned, with the database's
// clock in the contract's time zone.
func (d *drilled) timeIsKept(ctx context.Context) error {
	var right bool
	var stored, clock string
	if err := d.first.tx.QueryRow(ctx, d.run.table.time, d.run.table.arguments(proofID)...).Scan(&right, &stored, &clock); err != nil {
		return err
	}
	if !right {
		return violated(ReasonTimeChanged, "the record has the time %s where the database's clock has %s, so proofs would be pruned at the wrong time: %s",
			stored, clock, d.run.suspects())
	}
	return nil
}
