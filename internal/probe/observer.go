package probe

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// atOnce is how many brokers are looked at at the same time.
const atOnce = 16

// Result is the newest look at one target.
type Result struct {
	Transport string
	// Seen is the newest look that succeeded; nil before the first.
	Seen *Observation
	// Declared is what the DSN declares.
	Declared Declared
	// Failure is why the newest look failed; nil when it did not.
	Failure *Failure
	// At is when the newest look ended; zero before the first.
	At time.Time
	// Failures counts the looks that failed since the target is known.
	Failures int64
}

// Observer looks at the targets of many owners in the background, at each once per
// interval, so that none waits for another's broker. It looks at one broker at a time
// through one connection, which it closes after the look; when that broker is silent, all
// who waited for their turn share the answer. It is safe for concurrent use.
type Observer struct {
	interval time.Duration
	changed  func(owner string)
	clock    func() time.Time
	slots    chan struct{}
	ctx      context.Context //nolint:containedctx // the looks end with the observer
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mutex   sync.Mutex
	owners  map[string]*watch
	brokers map[string]*broker
}

// watch is what is known of one owner's targets.
type watch struct {
	identity []string
	targets  []Target
	results  []Result
	busy     bool
	due      time.Time
}

// broker lets one look at a time pass.
type broker struct {
	turn  chan struct{}
	users int
	// silences is how many looks in a row got no answer, silence the newest of them and
	// silentAt when it ended. They belong to who has the turn.
	silences int
	silence  *Failure
	silentAt time.Time
}

// NewObserver makes an observer. It calls changed, from another goroutine, when a look
// ended whose results tell something new. Close it.
func NewObserver(interval time.Duration, clock func() time.Time, changed func(owner string)) *Observer {
	ctx, cancel := context.WithCancel(context.Background())
	o := &Observer{
		interval: interval, changed: changed, clock: clock, slots: make(chan struct{}, atOnce), ctx: ctx, cancel: cancel,
		owners: map[string]*watch{}, brokers: map[string]*broker{},
	}
	o.running.Go(o.keepLooking)
	return o
}

// Results returns what is known of the owner's targets, without waiting. From now on it
// looks at these, and no others, of the owner. What was seen in another place, or with
// other credentials, is forgotten.
func (o *Observer) Results(owner string, targets []Target) []Result {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	known := o.owners[owner]
	identity := identityOf(targets)
	if known == nil || !slices.Equal(known.identity, identity) {
		known = &watch{identity: identity, results: make([]Result, len(targets))}
		for i, target := range targets {
			known.results[i] = Result{Transport: target.Transport, Declared: target.Declared()}
		}
		o.owners[owner] = known
		known.targets = targets
		o.start(owner, known)
	}
	known.targets = targets
	return slices.Clone(known.results)
}

// keepLooking starts the looks that are due.
func (o *Observer) keepLooking() {
	ticker := time.NewTicker(min(o.interval, time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-ticker.C:
		}
		o.mutex.Lock()
		for owner, known := range o.owners {
			if !o.clock().Before(known.due) {
				o.start(owner, known)
			}
		}
		o.mutex.Unlock()
	}
}

// start looks at an owner's targets unless that is going on. The mutex is held.
func (o *Observer) start(owner string, known *watch) {
	if known.busy || len(known.targets) == 0 || o.ctx.Err() != nil {
		return
	}
	known.busy, known.due = true, o.clock().Add(o.interval)
	targets := known.targets
	o.running.Go(func() { o.look(owner, known, targets) })
}

// Forget drops an owner.
func (o *Observer) Forget(owner string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.owners, owner)
}

// Close ends all looks and waits for them.
func (o *Observer) Close() {
	o.cancel()
	o.running.Wait()
}

// look goes through the targets of one owner, all at once.
func (o *Observer) look(owner string, known *watch, targets []Target) {
	fresh := make([]Result, len(targets))
	var looks sync.WaitGroup
	for i := range targets {
		looks.Go(func() { fresh[i] = o.lookAt(targets[i]) })
	}
	looks.Wait()

	o.mutex.Lock()
	news := false
	for i := range fresh {
		before := known.results[i]
		fresh[i].Failures += before.Failures
		if fresh[i].Seen == nil {
			fresh[i].Seen = before.Seen // the last that is known
		}
		news = news || !reflect.DeepEqual(before.Seen, fresh[i].Seen) || !reflect.DeepEqual(before.Failure, fresh[i].Failure) || before.At.IsZero()
	}
	known.results, known.busy = fresh, false
	current := o.owners[owner] == known
	o.mutex.Unlock()
	if news && current && o.ctx.Err() == nil {
		o.changed(owner)
	}
}

func (o *Observer) lookAt(target Target) Result {
	result := Result{Transport: target.Transport, Declared: target.Declared()}
	asked := o.clock()
	// The turn is waited for as long as it takes: the time limit is that of the look.
	at, release, err := o.take(target.sharedBroker())
	var failure *Failure
	if err == nil {
		var seen Observation
		if seen, err = o.lookUnlessSilent(target, at, asked); err == nil {
			result.Seen = &seen
		}
		release()
	}
	if errors.As(err, &failure) {
		result.Failure, result.Failures = failure, 1
	} else if err != nil {
		result.Failure = failed(ReasonUnexpectedError, "the look was ended") // the observer closes
	}
	result.At = o.clock()
	return result
}

// silentFor is how many looks in a row must get no answer before the broker itself is taken
// to be silent, and not only slow with what one of them asked.
const silentFor = 2

// lookUnlessSilent looks, unless others found the broker silent since this look was asked
// for: a hundred who wait for a dead one would else wait for each other. A database is
// silent for one table and not for the next; its pools know when it is silent for all. So is
// a cluster for one stream, whose node is silent.
func (o *Observer) lookUnlessSilent(target Target, at *broker, asked time.Time) (Observation, error) {
	if at.silences >= silentFor && at.silentAt.After(asked) {
		return Observation{}, at.silence
	}
	seen, err := Probe(o.ctx, target)
	var failure *Failure
	if errors.As(err, &failure) && failure.Reason == ReasonNoAnswer && target.Type != redelivery.Doctrine && !target.isCluster() {
		at.silences, at.silence, at.silentAt = at.silences+1, failure, o.clock()
	} else {
		at.silences = 0
	}
	return seen, err
}

// take waits for the turn at the broker, and then for a slot: a dead broker holds one.
func (o *Observer) take(address string) (at *broker, release func(), err error) {
	o.mutex.Lock()
	at = o.brokers[address]
	if at == nil {
		at = &broker{turn: make(chan struct{}, 1)}
		o.brokers[address] = at
	}
	at.users++
	o.mutex.Unlock()
	leave := func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if at.users--; at.users == 0 {
			delete(o.brokers, address)
		}
	}
	select {
	case at.turn <- struct{}{}:
	case <-o.ctx.Done():
		leave()
		return nil, nil, o.ctx.Err()
	}
	select {
	case o.slots <- struct{}{}:
	case <-o.ctx.Done():
		<-at.turn
		leave()
		return nil, nil, o.ctx.Err()
	}
	return at, func() {
		<-o.slots
		<-at.turn
		leave()
	}, nil
}
