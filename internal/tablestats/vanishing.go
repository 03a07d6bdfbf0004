package tablestats

import "time"

// vanishing says whether records went before their time. The oldest record is the
// watermark: once it is gone, somebody deleted it, and if it was younger than the
// retention, not the operator. A finding stays until records are seen to grow older
// than the age at which they went, or nothing confirmed it for eight days.
func vanishing(history *History, since interval, look Sample) *Vanishing {
	found := history.Vanished
	if found != nil && (found.Age >= look.Retention || outlived(found, look) || look.Clock.Sub(found.SeenAt) > forgetAfter) {
		found = nil
	}
	age, early := vanishedEarly(history, since, look)
	if !early {
		return found
	}
	if found != nil {
		age = min(age, found.Age)
	}
	return &Vanishing{Age: age, SeenAt: look.Clock}
}

// outlived says that the oldest record is a quarter older than what vanished, or has
// reached the retention.
func outlived(found *Vanishing, look Sample) bool {
	return look.Oldest != nil && look.Clock.Sub(*look.Oldest) >= min(found.Age+found.Age/4, look.Retention)
}

// vanishedEarly returns the age that the last look's oldest record has at most reached,
// when it is gone before its time.
func vanishedEarly(history *History, since interval, look Sample) (time.Duration, bool) {
	watermark := history.Oldest
	if watermark == nil || !look.Known || history.Last.Table != look.Table {
		return 0, false
	}
	if look.Oldest != nil && !look.Oldest.After(*watermark) {
		return 0, false
	}
	age := look.Clock.Sub(*watermark)
	if age < minVanishedAge || age+clockSlack >= min(history.Retention, look.Retention) {
		return 0, false
	}
	if look.Cutoff != nil && watermark.Before(*look.Cutoff) {
		return 0, false
	}
	// A consumer that renews the time of a record moves the watermark and deletes nothing.
	renewed := since.known && since.updated > 0 && since.deleted <= look.Pruned-history.Pruned
	return age, !renewed
}
