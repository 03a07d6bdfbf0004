package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/messaginginbox/operator/test/faults/brokers"
)

// The redelivery of the loop, in seconds instead of hours. manifests declares the same.
const (
	loopRedeliverTimeout = 2 * time.Second
	loopClaimInterval    = 200 * time.Millisecond
	loopHeartbeat        = 5 * time.Second // a busy machine may keep RabbitMQ from sending one for a while
	loopRetryDelay       = time.Second
	loopMaxRetries       = 2
	loopMaxDowntime      = 3 * time.Second
	loopOrders           = 6 // per cycle, so at most as many are pending in Redis
)

// loop runs the faults while proofs are pruned: in each cycle workers lose
// acknowledgements, then there is no worker for a time, then one drains the queue.
type loop struct {
	inbox  *product
	cycles int
}

// manifest writes the resource that declares what the loop does, and returns its path.
func (l loop) manifest(kind brokers.Kind, period time.Duration) (string, error) {
	own := map[brokers.Kind]string{
		brokers.RabbitMQ:     fmt.Sprintf("type: amqp\n    redelivery: {heartbeat: %s", loopHeartbeat),
		brokers.RedisStreams: fmt.Sprintf("type: redis\n    redelivery: {redeliverTimeout: %s, claimInterval: %s, maxPending: %d", loopRedeliverTimeout, loopClaimInterval, loopOrders),
		brokers.Doctrine:     fmt.Sprintf("type: doctrine\n    redelivery: {redeliverTimeout: %s, checkDelayedInterval: 0s", loopRedeliverTimeout),
	}
	text := fmt.Sprintf(`apiVersion: messaginginbox.dev/v1alpha1
kind: MessagingInbox
metadata: {name: loop}
spec:
  database: {urlSecretRef: {name: database}}
  retention: {period: %s, marginPercent: 0}
  redelivery: {maxDowntime: %s, maxHandlerTime: 200ms, lostAcks: 1}
  transports:
  - name: %s
    %s, retryStrategy: {maxRetries: %d, delay: %s, multiplier: 2, jitter: 0}}
`, period, loopMaxDowntime, transport, own[kind], loopMaxRetries, loopRetryDelay)
	path := filepath.Join(l.inbox.dir, fmt.Sprintf("%s-%s.yaml", kind, period))
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// required is the window that the operator computes for the loop.
func (l loop) required(ctx context.Context, kind brokers.Kind) (time.Duration, error) {
	path, err := l.manifest(kind, time.Hour)
	if err != nil {
		return 0, err
	}
	return l.inbox.required(ctx, path)
}

// justAbove prunes with a retention one second above the required window.
func (l loop) justAbove(ctx context.Context, a *application) (check, error) {
	required, err := l.required(ctx, a.kind)
	if err != nil {
		return check{}, err
	}
	retention := required + time.Second
	path, err := l.manifest(a.kind, retention)
	if err != nil {
		return check{}, err
	}
	reason, code, err := l.inbox.retentionSafe(ctx, a.url, path)
	if err != nil {
		return check{}, err
	}
	deleted := 0
	err = a.whilePruning(ctx, time.Second, func(ctx context.Context) error {
		report, failure := l.inbox.prune(ctx, a.url, retention, required)
		deleted += report.RowsDeleted
		if failure == nil && report.code != exitDone {
			failure = fmt.Errorf("inbox prune: %s, %s", report.Result, report.Reason)
		}
		return failure
	}, l.cycles, retention+5*time.Second) // so long that proofs expire
	if err != nil {
		return check{}, err
	}
	b, err := a.balance(ctx)
	skipped, latest := a.redeliveries()
	return verdict("pruning on, retention just above the required window",
		"inbox check is satisfied, proofs are pruned, no redelivery finds its proof gone",
		code == exitDone && deleted > 0 && skipped > 0 && b.doubled == 0 && b.lost == 0,
		"required %s, retention %s, inbox check: %s; proofs pruned: %d; redeliveries that found their proof: %d, the latest %s after the commit; double effects: %d, lost: %d",
		required, retention, reason, deleted, skipped, latest.Round(100*time.Millisecond), b.doubled, b.lost), err
}

// justBelow asks the operator to prune with a retention one second too short.
func (l loop) justBelow(ctx context.Context, a *application) (check, error) {
	required, err := l.required(ctx, a.kind)
	if err != nil {
		return check{}, err
	}
	retention := required - time.Second
	path, err := l.manifest(a.kind, retention)
	if err != nil {
		return check{}, err
	}
	reason, code, err := l.inbox.retentionSafe(ctx, a.url, path)
	if err != nil {
		return check{}, err
	}
	if _, err = a.db.Exec(ctx, `INSERT INTO messenger_inbox SELECT $1, 'old-' || n, localtimestamp - interval '1 day' FROM generate_series(1, 10) n`, transport); err != nil {
		return check{}, err
	}
	report, err := l.inbox.prune(ctx, a.url, retention, required)
	if err != nil {
		return check{}, err
	}
	b, err := a.balance(ctx)
	return verdict("retention just below the required window",
		"inbox check and inbox prune refuse; nothing is deleted",
		code == exitUnready && reason == "False/TooShort" && report.code == exitRefused && report.Reason == "TooShort" && b.proofs == 10,
		"required %s, retention %s; inbox check: %s, exit code %d; inbox prune: %s, %s, exit code %d; %d of 10 old proofs are left",
		required, retention, reason, code, report.Result, report.Reason, report.code, b.proofs), err
}

// bypassed deletes proofs without the operator, by a retention that somebody guessed.
func (l loop) bypassed(ctx context.Context, a *application) (check, error) {
	const guess = time.Second
	somebody, err := a.connect(ctx, "bypass")
	if err != nil {
		return check{}, err
	}
	defer func() { _ = somebody.Close(context.WithoutCancel(ctx)) }() // each DELETE commits by itself
	err = a.whilePruning(ctx, 100*time.Millisecond, func(ctx context.Context) error {
		_, failure := somebody.Exec(ctx, `DELETE FROM messenger_inbox WHERE processed_at < clock_timestamp() AT TIME ZONE 'UTC' - make_interval(secs => $1)`, guess.Seconds())
		return failure
	}, 1, 0)
	if err != nil {
		return check{}, err
	}
	b, err := a.balance(ctx)
	return verdict("operator bypassed: DELETE with a retention of "+guess.String(),
		"double effects really happen: this run can fail", b.doubled > 0 && b.lost == 0,
		"%d of %d orders have two effects or more", b.doubled, b.orders), err
}
