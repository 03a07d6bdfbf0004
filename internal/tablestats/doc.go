// Package tablestats measures the inbox table without reading its records: the times
// of the first and the last one, and what PostgreSQL's cumulative statistics say of
// inserts, deletions, redeliveries, dead rows and sizes. What follows from two looks is
// computed by pure functions.
package tablestats
