package database

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PoolOptions configure Pools. A zero field means its default.
type PoolOptions struct {
	MaxConns    int32         // of each pool; default 2
	IdleTimeout time.Duration // a pool that nobody asked for in that time is closed; default 10 minutes
	Limits      Limits
	Clock       func() time.Time // default time.Now
}

// Pools keeps one small pool for each target that its owners use. It is safe for
// concurrent use, and holds no lock while it connects: a slow host delays only those who
// ask for it.
type Pools struct {
	options PoolOptions

	mutex    sync.Mutex
	closed   bool
	byOwner  map[string]*entry
	byTarget map[string]*entry   // by fingerprint
	attempts map[string]*attempt // by fingerprint: being connected and checked
	silences map[string]silence  // by fingerprint: gave no answer in time
}

// entry is a pool that works, shared by the owners that have the same target.
type entry struct {
	fingerprint string
	pool        *pgxpool.Pool
	owners      int
	lastUsed    time.Time
}

// NewPools makes an empty set of pools.
func NewPools(o PoolOptions) *Pools {
	if o.MaxConns <= 0 {
		o.MaxConns = 2
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 10 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Limits = o.Limits.withDefaults()
	return &Pools{
		options:  o,
		byOwner:  map[string]*entry{},
		byTarget: map[string]*entry{},
		attempts: map[string]*attempt{},
		silences: map[string]silence{},
	}
}

// Get returns the owner's pool for a target. A new pool is checked with a connection first;
// when that fails, the error (a *ConnectError) is returned and the owner's former pool stays
// open until a new one works, but is not returned for the new target. When it works, the
// former pool is closed as soon as its connections are given back.
//
// A check takes no longer than the connect timeout for each host of the URL. A target that
// gave no answer in that time is left alone for 15 s, after the next such failures for 30 s
// and then 60 s; whoever asks meanwhile has the same error at once. When it is tried again, Get
// waits for no more than a second. So silent servers do not hold up those who serve others too.
//
// Ask each time: a pool that is kept is closed once nobody has asked for it for IdleTimeout
// and none of its connections is in use. A pool connects anew by itself after the server
// was restarted.
func (p *Pools) Get(ctx context.Context, owner string, c *Config) (*pgxpool.Pool, error) {
	fingerprint := c.Fingerprint()
	for {
		pool, pending, err := p.attach(owner, fingerprint, c)
		if pool != nil || err != nil {
			return pool, err
		}
		if err := pending.wait(ctx); err != nil {
			return nil, &ConnectError{config: c, cause: err}
		}
	}
}

// attach returns the pool of the target when there is one, else the attempt to make it.
func (p *Pools) attach(owner, fingerprint string, c *Config) (*pgxpool.Pool, *attempt, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.closed {
		return nil, nil, &ConnectError{config: c, cause: errClosed}
	}
	if e := p.byTarget[fingerprint]; e != nil {
		e.lastUsed = p.options.Clock()
		if former := p.byOwner[owner]; former != e {
			e.owners++
			p.byOwner[owner] = e
			p.release(former)
		}
		return e.pool, nil, nil
	}
	silence := p.silences[fingerprint]
	if p.options.Clock().Before(silence.until) {
		return nil, nil, &ConnectError{config: c, cause: silence.err}
	}
	a := p.attempts[fingerprint]
	if a == nil {
		a = &attempt{done: make(chan struct{}), former: silence.err}
		p.attempts[fingerprint] = a
		go p.run(a, fingerprint, c)
	}
	return nil, a, nil
}

// run makes and checks a pool. It has its own time limit, not that of the first who asked:
// others may wait for it too.
func (p *Pools) run(a *attempt, fingerprint string, c *Config) {
	e := &entry{fingerprint: fingerprint}
	pool, err := c.newPool(p.options, func(err error) { p.dropSilent(e, err) })
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.attempts, fingerprint)
	switch {
	case err != nil:
		a.err = err
		p.remember(fingerprint, err)
	case p.closed:
		a.err = errClosed
		go pool.Close()
	default:
		e.pool, e.lastUsed = pool, p.options.Clock()
		p.byTarget[fingerprint] = e
		delete(p.silences, fingerprint)
	}
	close(a.done)
}

// release takes one owner off a pool, and closes it after the last. The mutex is held.
func (p *Pools) release(e *entry) {
	if e == nil {
		return
	}
	if e.owners--; e.owners <= 0 {
		p.discard(e)
	}
}

// discard closes a pool in the background: Close waits for connections that are in use.
func (p *Pools) discard(e *entry) {
	delete(p.byTarget, e.fingerprint)
	go e.pool.Close()
}

// Forget drops an owner's pool, when the owner is gone. An unknown owner is no error.
func (p *Pools) Forget(owner string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.release(p.byOwner[owner])
	delete(p.byOwner, owner)
}

// CloseIdle closes the pools that nobody asked for in IdleTimeout and that are not in use
// now. Call it now and then.
func (p *Pools) CloseIdle() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	oldest := p.options.Clock().Add(-p.options.IdleTimeout)
	for _, e := range p.byTarget {
		if e.lastUsed.Before(oldest) && e.pool.Stat().AcquiredConns() == 0 {
			p.discard(e)
		}
	}
	p.disown()
	maps.DeleteFunc(p.silences, func(_ string, s silence) bool { return s.until.Before(oldest) })
}

// disown takes the pools that were closed from their owners. The mutex is held.
func (p *Pools) disown() {
	maps.DeleteFunc(p.byOwner, func(_ string, e *entry) bool { return p.byTarget[e.fingerprint] != e })
}

// Close closes all pools, each once its connections are given back, without waiting for
// that. Get fails from now on.
func (p *Pools) Close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.closed = true
	for _, e := range p.byTarget {
		p.discard(e)
	}
	clear(p.byOwner)
}

// Len is the number of open pools.
func (p *Pools) Len() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.byTarget)
}

// newPool makes a pool and checks it with one connection. It tells of a connection that
// later gives no answer in time.
func (c *Config) newPool(o PoolOptions, silent func(error)) (*pgxpool.Pool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience(o.Limits))
	defer cancel()
	pool, err := c.checkedPool(ctx, o, silent, false)
	if refusesStartupParameter(err) {
		return c.checkedPool(ctx, o, silent, true)
	}
	return pool, err
}

func (c *Config) checkedPool(ctx context.Context, o PoolOptions, silent func(error), pooler bool) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(c.pgx.ConnString())
	if err != nil {
		return nil, invalid("the URL's options are not valid any more: do the files that it names still exist?")
	}
	config.ConnConfig = c.connConfig(o.Limits, pooler)
	config.MaxConns = o.MaxConns
	config.MaxConnIdleTime = min(o.IdleTimeout, 5*time.Minute)
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // PrepareConn does
	config.PrepareConn = c.answers(c.timeoutPerHost(o.Limits), silent)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		go pool.Close() // not here: it waits for an attempt to connect that is under way
		return nil, err
	}
	return pool, nil
}
