// Package redelivery works out how long after its handling a message can still
// come back. The proof in the inbox table must be kept for at least that long,
// so everything else in the operator stands on this sum:
//
//	W = R(outbox) + D(outbox)                     with an outbox
//	  + k * R + D
//	  + F + D(failure) + k * R(failure)           with a failure transport
//	  + replay window
//	  + downtime
//
// Without a broker of its own (sync, inMemory) nothing comes back, unless the messages
// come from an outbox: its relay then handles them, and
//
//	W = k * R(outbox) + D(outbox)
//	  + F + D(failure) + k * R(failure)           with a failure transport of the outbox
//	  + replay window
//	  + downtime
//
// W is the redelivery window of one transport. R is the latest moment, after a
// commit whose acknowledgement was lost, at which the broker hands the message out
// again (redelivery.go). D is the longest that its retry strategy can delay a
// message in all (retry.go). F is how long a message may stay in the failure
// transport. k is the number of acknowledgements in a row that may be lost.
//
// Require sums up all transports: the retention must reach the largest window of
// those that the inbox covers. A window that something undeclared decides is
// unbounded, and names the fields to declare; nothing is guessed. So is a sum that
// a time.Duration cannot hold (292 years). All values are pure, all arithmetic is
// in integers, and every rounding is upwards: a window may be a little too
// long, never too short.
package redelivery
