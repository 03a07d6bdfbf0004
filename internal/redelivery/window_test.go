package redelivery

import (
	"math"
	"slices"
	"testing"
	"time"
)

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

func at(name string, t Transport) Transport {
	t.Name, t.Path, t.Inbox = name, "spec.transports["+name+"]", true
	return t
}

// windowIn is the window of the first of the transports.
func windowIn(first Transport, others ...Transport) Window {
	return Require(append([]Transport{first}, others...)).Windows[0]
}

func TestRedeliveryOfEachType(t *testing.T) {
	tests := map[string]struct {
		transport Transport
		want      time.Duration
		origin    Origin
	}{
		"doctrine by default":           {Transport{Type: Doctrine}, 3662 * second, OriginDefault},
		"doctrine that polls":           {Transport{Type: Doctrine, CheckDelayedInterval: Declared(0)}, 3602 * second, OriginDeclared},
		"doctrine from its DSN":         {Transport{Type: Doctrine, RedeliverTimeout: Setting{600 * second, OriginDSN}}, 662 * second, OriginDSN},
		"doctrine, a negative time-out": {Transport{Type: Doctrine, RedeliverTimeout: Declared(-hour)}, 62 * second, OriginDeclared},

		"redis by default":           {Transport{Type: Redis}, (3600 + 100*(60+60)) * second, OriginDefault},
		"redis, redeliverTimeout":    {Transport{Type: Redis, RedeliverTimeout: Declared(minute)}, (60 + 100*(60+60)) * second, OriginDeclared},
		"redis, claimInterval":       {Transport{Type: Redis, ClaimInterval: Declared(second)}, (3600 + 100*(1+60)) * second, OriginDeclared},
		"redis, maxHandlerTime":      {Transport{Type: Redis, MaxHandlerTime: Declared(5 * minute)}, (3600 + 100*(60+300)) * second, OriginDeclared},
		"redis, maxPending observed": {Transport{Type: Redis, MaxPending: Count{7, OriginObserved}, ClaimInterval: Declared(minute)}, (3600 + 7*(60+60)) * second, OriginObserved},

		"amqp by default: a hung worker":                 {Transport{Type: AMQP}, 7201100 * time.Millisecond, OriginDefault},
		"amqp, a short maxWorkerHang":                    {Transport{Type: AMQP, MaxWorkerHang: Declared(minute)}, (1860*1000 + 1100) * time.Millisecond, OriginDefault},
		"amqp, maxWorkerHang":                            {Transport{Type: AMQP, MaxWorkerHang: Declared(3 * hour)}, (10800*1000 + 1100) * time.Millisecond, OriginDeclared},
		"amqp, consumerTimeout":                          {Transport{Type: AMQP, ConsumerTimeout: Declared(4 * hour)}, (14460*1000 + 1100) * time.Millisecond, OriginDeclared},
		"amqp, consumerTimeout that does not decide":     {Transport{Type: AMQP, ConsumerTimeout: Declared(minute)}, 7201100 * time.Millisecond, OriginDefault},
		"amqp, heartbeat":                                {Transport{Type: AMQP, Heartbeat: Declared(20 * second)}, 61100 * time.Millisecond, OriginDeclared},
		"amqp, no heartbeat, declared":                   {Transport{Type: AMQP, Heartbeat: Declared(0)}, 7201100 * time.Millisecond, OriginDefault},
		"amqp without retries has no retry delay":        {Transport{Type: AMQP, Heartbeat: Declared(20 * second), Retry: RetryStrategy{MaxRetries: DeclaredCount(0)}}, minute, OriginDeclared},
		"amqp, the first retry delay is capped":          {Transport{Type: AMQP, Heartbeat: Declared(20 * second), Retry: RetryStrategy{Delay: Declared(minute), MaxDelay: Declared(hour / 60)}}, 2 * minute, OriginDeclared},
		"amqp, a service delays once for all its delays": {Transport{Type: AMQP, Heartbeat: Declared(20 * second), Retry: RetryStrategy{Service: "app.retry", MaxTotal: Declared(hour)}}, hour + minute, OriginDeclared},

		"sqs by default: the service's maximum": {Transport{Type: SQS}, 43200 * second, OriginDefault},
		"sqs as observed":                       {Transport{Type: SQS, VisibilityTimeout: Setting{30 * second, OriginObserved}}, 30 * second, OriginObserved},
		"beanstalkd by default":                 {Transport{Type: Beanstalkd}, 90 * second, OriginDefault},
		"beanstalkd, ttr":                       {Transport{Type: Beanstalkd, TTR: Declared(10 * minute)}, 10 * minute, OriginDeclared},
		"a declared 0 is shown":                 {Transport{Type: Beanstalkd, TTR: Declared(0)}, 0, OriginDeclared},

		"two lost acknowledgements":     {Transport{Type: Doctrine, LostAcks: DeclaredCount(2)}, 7324 * second, OriginDeclared},
		"two with one retry delay each": {Transport{Type: AMQP, LostAcks: DeclaredCount(2)}, 14402200 * time.Millisecond, OriginDeclared},
		"at least one is tolerated":     {Transport{Type: Beanstalkd, LostAcks: DeclaredCount(0)}, 90 * second, OriginDeclared},
		"options of another type":       {Transport{Type: Beanstalkd, RedeliverTimeout: Declared(hour), VisibilityTimeout: Declared(hour), Heartbeat: Declared(hour)}, 90 * second, OriginDefault},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := windowIn(at("orders", test.transport))
			want := Term{TermRedelivery, test.want, test.origin}
			if !w.Bounded || !slices.Contains(w.Terms, want) {
				t.Errorf("got %+v, want it to contain %+v", w, want)
			}
		})
	}
}

func TestRetryDelaysOfEachType(t *testing.T) {
	hourly := RetryStrategy{MaxRetries: DeclaredCount(2), Delay: Declared(hour), Jitter: new(Ratio(0))}
	service := RetryStrategy{Service: "app.retry", MaxTotal: Declared(hour)}
	counted := RetryStrategy{Service: "app.retry", MaxTotal: Declared(hour), MaxRetries: DeclaredCount(10)}
	tests := map[string]struct {
		transport Transport
		want      time.Duration
		origin    Origin
	}{
		"amqp by default":                             {Transport{Type: AMQP}, 7700 * time.Millisecond, OriginDefault},
		"redis by default":                            {Transport{Type: Redis}, 7700 * time.Millisecond, OriginDefault},
		"beanstalkd by default":                       {Transport{Type: Beanstalkd}, 7700 * time.Millisecond, OriginDefault},
		"sqs by default":                              {Transport{Type: SQS}, 7700 * time.Millisecond, OriginDefault},
		"doctrine waits for its check at each retry":  {Transport{Type: Doctrine}, (7700 + 3*62000) * time.Millisecond, OriginDefault},
		"doctrine, checkDelayedInterval":              {Transport{Type: Doctrine, CheckDelayedInterval: Declared(10 * second)}, (7700 + 3*12000) * time.Millisecond, OriginDeclared},
		"doctrine that polls adds nothing":            {Transport{Type: Doctrine, CheckDelayedInterval: Declared(0)}, 7700 * time.Millisecond, OriginDeclared},
		"doctrine without retries":                    {Transport{Type: Doctrine, Retry: RetryStrategy{MaxRetries: DeclaredCount(0)}}, 0, OriginDeclared},
		"amqp keeps long delays":                      {Transport{Type: AMQP, Retry: hourly}, 3 * hour, OriginDeclared},
		"sqs cuts each delay to 900 s":                {Transport{Type: SQS, Retry: hourly}, 1800 * second, OriginDeclared},
		"sqs keeps a shorter maxDelay":                {Transport{Type: SQS, Retry: RetryStrategy{MaxRetries: DeclaredCount(2), Delay: Declared(hour), MaxDelay: Declared(minute)}}, 2 * minute, OriginDeclared},
		"sqs cuts a longer maxDelay":                  {Transport{Type: SQS, Retry: RetryStrategy{MaxRetries: DeclaredCount(2), Delay: Declared(hour), MaxDelay: Declared(hour)}}, 1800 * second, OriginDeclared},
		"sqs makes many retries finite":               {Transport{Type: SQS, Retry: RetryStrategy{MaxRetries: DeclaredCount(100), Jitter: new(Ratio(0))}}, (1023 + 90*900) * second, OriginDeclared},
		"a declared multiplier":                       {Transport{Type: AMQP, Retry: RetryStrategy{Multiplier: new(One)}}, 3300 * time.Millisecond, OriginDeclared},
		"a service within maxTotal":                   {Transport{Type: Redis, Retry: service}, hour, OriginDeclared},
		"a service on doctrine that polls":            {Transport{Type: Doctrine, CheckDelayedInterval: Declared(0), Retry: service}, hour, OriginDeclared},
		"a service on doctrine with so many retries":  {Transport{Type: Doctrine, Retry: counted}, hour + 620*second, OriginDeclared},
		"a service's number of retries matters there": {Transport{Type: SQS, Retry: counted}, hour, OriginDeclared},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := windowIn(at("orders", test.transport))
			want := Term{TermRetries, test.want, test.origin}
			if !w.Bounded || !slices.Contains(w.Terms, want) {
				t.Errorf("got %+v, want it to contain %+v", w, want)
			}
		})
	}
}

func TestWindowAddsItsTerms(t *testing.T) {
	outbox := at("db_outbox", Transport{Type: Doctrine})
	failed := at("failed", Transport{Type: Doctrine, MaxAge: Declared(336 * hour), CheckDelayedInterval: Declared(10 * second)})
	failedRedis := at("failed_redis", Transport{Type: Redis, MaxAge: Declared(hour), MaxPending: DeclaredCount(1), MaxHandlerTime: Declared(9 * minute), LostAcks: DeclaredCount(9)})
	orders := Transport{Type: Beanstalkd, LostAcks: DeclaredCount(2), MaxDowntime: Declared(48 * hour), ReplayWindow: Declared(hour)}
	own := []Term{{TermRedelivery, 180 * second, OriginDeclared}, {TermRetries, 7700 * time.Millisecond, OriginDefault}}
	around := []Term{{TermReplay, hour, OriginDeclared}, {TermDowntime, 48 * hour, OriginDeclared}}
	with := func(outbox, failure string) Transport {
		transport := orders
		transport.Outbox, transport.FailureTransport = outbox, failure
		return at("orders", transport)
	}
	outboxTerms := []Term{{TermOutboxRedelivery, 3662 * second, OriginDefault}, {TermOutboxRetries, 193700 * time.Millisecond, OriginDefault}}
	failureTerms := []Term{
		{TermFailureStay, 336 * hour, OriginDeclared},
		{TermFailureRetries, (7700 + 3*12000) * time.Millisecond, OriginDeclared},
		{TermFailureRedelivery, 2 * (3600 + 10 + 2) * second, OriginDeclared},
	}
	tests := map[string]struct {
		transport Transport
		others    []Transport
		want      []Term
	}{
		"by itself":                {with("", ""), nil, slices.Concat(own, around)},
		"with an outbox":           {with("db_outbox", ""), []Transport{outbox}, slices.Concat(outboxTerms, own, around)},
		"with a failure transport": {with("", "failed"), []Transport{failed}, slices.Concat(own, failureTerms, around)},
		"with both":                {with("db_outbox", "failed"), []Transport{failed, outbox}, slices.Concat(outboxTerms, own, failureTerms, around)},
		"the failure transport's own handler time, the transport's lost acknowledgements": {with("", "failed_redis"), []Transport{failedRedis}, slices.Concat(own, []Term{
			{TermFailureStay, hour, OriginDeclared},
			{TermFailureRetries, 7700 * time.Millisecond, OriginDefault},
			{TermFailureRedelivery, 2 * (3600 + 60 + 540) * second, OriginDeclared},
		}, around)},
		"by default only the downtime is added": {at("orders", Transport{Type: Beanstalkd}), nil, []Term{
			{TermRedelivery, 90 * second, OriginDefault}, {TermRetries, 7700 * time.Millisecond, OriginDefault}, {TermDowntime, 24 * hour, OriginDefault},
		}},
		"an outbox with a declared window": {with("relay", ""), []Transport{at("relay", Transport{Type: Custom, Window: Declared(2 * hour)})},
			slices.Concat([]Term{{TermOutboxWindow, 2 * hour, OriginDeclared}}, own, around)},
		"a failure transport with a declared window needs no maxAge": {with("", "dead"), []Transport{at("dead", Transport{Type: Doctrine, Window: Declared(200 * hour)})},
			slices.Concat(own, []Term{{TermFailureWindow, 200 * hour, OriginDeclared}}, around)},
		"an outbox and a failure transport that never redeliver": {with("now", "memory"), []Transport{at("now", Transport{Type: Sync}), at("memory", Transport{Type: InMemory})}, slices.Concat(own, around)},
		"the outbox of the outbox and the failure transport of the failure transport do not count": {with("loop", "loop"),
			[]Transport{at("loop", Transport{Type: Beanstalkd, MaxAge: Declared(hour), Outbox: "loop", FailureTransport: "loop"})},
			slices.Concat([]Term{{TermOutboxRedelivery, 90 * second, OriginDefault}, {TermOutboxRetries, 7700 * time.Millisecond, OriginDefault}}, own, []Term{
				{TermFailureStay, hour, OriginDeclared}, {TermFailureRetries, 7700 * time.Millisecond, OriginDefault}, {TermFailureRedelivery, 180 * second, OriginDeclared},
			}, around)},
		"sync":     {at("orders", Transport{Type: Sync, MaxDowntime: Declared(hour), FailureTransport: "failed"}), nil, nil},
		"inMemory": {at("orders", Transport{Type: InMemory, ReplayWindow: Declared(hour)}), nil, nil},
		"sync behind an outbox": {at("orders", Transport{Type: Sync, LostAcks: DeclaredCount(2), MaxDowntime: Declared(48 * hour), ReplayWindow: Declared(hour), Outbox: "db_outbox", FailureTransport: "failed_redis"}),
			[]Transport{outbox, failedRedis}, slices.Concat([]Term{{TermOutboxRedelivery, 2 * 3662 * second, OriginDeclared}, outboxTerms[1]}, around)},
		"sync behind an outbox with a failure transport": {at("orders", Transport{Type: Sync, LostAcks: DeclaredCount(2), MaxDowntime: Declared(48 * hour), ReplayWindow: Declared(hour), Outbox: "relayed"}),
			[]Transport{at("relayed", Transport{Type: Beanstalkd, FailureTransport: "failed"}), failed},
			slices.Concat([]Term{{TermOutboxRedelivery, 180 * second, OriginDeclared}, {TermOutboxRetries, 7700 * time.Millisecond, OriginDefault}}, failureTerms, around)},
		"inMemory behind an outbox with a declared window": {at("orders", Transport{Type: InMemory, MaxDowntime: Declared(0), Outbox: "relay"}),
			[]Transport{at("relay", Transport{Type: Custom, Window: Declared(2 * hour)})}, []Term{{TermOutboxWindow, 2 * hour, OriginDeclared}, {TermDowntime, 0, OriginDeclared}}},
		"sync behind an outbox that never redelivers": {at("orders", Transport{Type: Sync, Outbox: "memory"}), []Transport{at("memory", Transport{Type: InMemory})}, nil},
		"custom with a declared window":               {at("orders", Transport{Type: Custom, Window: Declared(96 * hour), MaxDowntime: Declared(hour)}), nil, []Term{{TermDeclaredWindow, 96 * hour, OriginDeclared}}},
		"sync with a declared window":                 {at("orders", Transport{Type: Sync, Window: Declared(hour)}), nil, []Term{{TermDeclaredWindow, hour, OriginDeclared}}},
		"a negative declared window":                  {at("orders", Transport{Type: Custom, Window: Declared(-hour)}), nil, []Term{{TermDeclaredWindow, 0, OriginDeclared}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := windowIn(test.transport, test.others...)
			var sum time.Duration
			for _, term := range test.want {
				sum += term.Value
			}
			if !w.Bounded || w.Duration != sum || !slices.Equal(w.Terms, test.want) || w.Undeclared != nil {
				t.Errorf("got %+v\nwant %v and %+v", w, sum, test.want)
			}
		})
	}
}

func TestUnboundedWindowNamesTheFieldsToDeclare(t *testing.T) {
	const orders = "spec.transports[orders]"
	opaque := RetryStrategy{Service: "app.retry"}
	bounded := RetryStrategy{Service: "app.retry", MaxTotal: Declared(hour)}
	tests := map[string]struct {
		transport Transport
		others    []Transport
		want      []string
	}{
		"custom":                    {Transport{Type: Custom}, nil, []string{orders + ".redelivery.window"}},
		"a type that nobody knows":  {Transport{Type: "kafka"}, nil, []string{orders + ".redelivery.window"}},
		"an opaque retry service":   {Transport{Type: Redis, Retry: opaque}, nil, []string{orders + ".redelivery.retryStrategy.maxTotal"}},
		"amqp needs it once":        {Transport{Type: AMQP, Retry: opaque}, nil, []string{orders + ".redelivery.retryStrategy.maxTotal"}},
		"doctrine needs more of it": {Transport{Type: Doctrine, Retry: opaque}, nil, []string{orders + ".redelivery.retryStrategy.maxTotal", orders + ".redelivery.retryStrategy.maxRetries"}},
		"a number of retries":       {Transport{Type: Doctrine, Retry: bounded}, nil, []string{orders + ".redelivery.retryStrategy.maxRetries"}},
		"a failure transport without maxAge": {Transport{Type: AMQP, FailureTransport: "failed"}, []Transport{at("failed", Transport{Type: Doctrine})},
			[]string{"spec.transports[failed].redelivery.maxAge"}},
		"a custom failure transport": {Transport{Type: AMQP, FailureTransport: "failed"}, []Transport{at("failed", Transport{Type: Custom, MaxAge: Declared(hour)})},
			[]string{"spec.transports[failed].redelivery.window"}},
		"a custom outbox": {Transport{Type: AMQP, Outbox: "relay"}, []Transport{at("relay", Transport{Type: Custom})},
			[]string{"spec.transports[relay].redelivery.window"}},
		"an outbox with an opaque service": {Transport{Type: AMQP, Outbox: "relay"}, []Transport{at("relay", Transport{Type: SQS, Retry: opaque})},
			[]string{"spec.transports[relay].redelivery.retryStrategy.maxTotal"}},
		"no such transports": {Transport{Type: AMQP, Outbox: "relay", FailureTransport: "failed"}, nil,
			[]string{orders + ".outbox (no transport is named relay)", orders + ".failureTransport (no transport is named failed)"}},
		"delays that overflow":     {Transport{Type: Redis, Retry: RetryStrategy{MaxRetries: DeclaredCount(60)}}, nil, []string{orders + ".redelivery.retryStrategy.maxDelay"}},
		"a redelivery that does":   {Transport{Type: Doctrine, LostAcks: DeclaredCount(math.MaxInt64)}, nil, []string{orders + ".redelivery.window"}},
		"a first delay that does":  {Transport{Type: AMQP, Retry: RetryStrategy{Delay: Declared(math.MaxInt64)}}, nil, []string{orders + ".redelivery.window", orders + ".redelivery.retryStrategy.maxDelay"}},
		"wake-ups that do":         {Transport{Type: Doctrine, Retry: RetryStrategy{MaxRetries: DeclaredCount(1_000_000_000), MaxDelay: Declared(second)}}, nil, []string{orders + ".redelivery.window"}},
		"a sum that does":          {Transport{Type: Redis, MaxDowntime: Declared(math.MaxInt64 - hour)}, nil, []string{orders + ".redelivery.window"}},
		"a declared window too":    {Transport{Type: Redis, Window: Declared(math.MaxInt64)}, nil, []string{orders + ".redelivery.window"}},
		"a failure transport does": {Transport{Type: Redis, FailureTransport: "failed"}, []Transport{at("failed", Transport{Type: SQS, MaxAge: Declared(math.MaxInt64)})}, []string{orders + ".redelivery.window"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := windowIn(at("orders", test.transport), test.others...)
			if w.Bounded || w.Duration != 0 || !slices.Equal(w.Undeclared, test.want) {
				t.Errorf("got %+v\nwant unbounded for %q", w, test.want)
			}
		})
	}
}

func TestUnboundedWindowStillListsWhatIsKnown(t *testing.T) {
	got := windowIn(at("orders", Transport{Type: Redis, Outbox: "relay", FailureTransport: "failed", Retry: RetryStrategy{Service: "app.retry"}}),
		at("relay", Transport{Type: Beanstalkd}), at("failed", Transport{Type: SQS}))
	want := []Term{
		{TermOutboxRedelivery, 90 * second, OriginDefault},
		{TermOutboxRetries, 7700 * time.Millisecond, OriginDefault},
		{TermRedelivery, 15600 * second, OriginDefault},
		{TermFailureRetries, 7700 * time.Millisecond, OriginDefault},
		{TermFailureRedelivery, 12 * hour, OriginDefault},
		{TermDowntime, 24 * hour, OriginDefault},
	}
	if got.Bounded || !slices.Equal(got.Terms, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestDeclaredWindowThatIsShorterThanItsOwnRedelivery(t *testing.T) {
	own := (7200+1)*second + 100*time.Millisecond + 7700*time.Millisecond
	tests := map[string]struct {
		transport Transport
		want      time.Duration // 0: no warning
	}{
		"shorter":              {Transport{Type: AMQP, Window: Declared(own - 1)}, own},
		"equal":                {Transport{Type: AMQP, Window: Declared(own)}, 0},
		"longer":               {Transport{Type: AMQP, Window: Declared(96 * hour)}, 0},
		"with k":               {Transport{Type: Beanstalkd, Window: Declared(minute), LostAcks: DeclaredCount(3)}, 270*second + 7700*time.Millisecond},
		"negative":             {Transport{Type: Beanstalkd, Window: Declared(-minute)}, 97700 * time.Millisecond},
		"custom":               {Transport{Type: Custom, Window: Declared(minute)}, 0},
		"sync":                 {Transport{Type: Sync, Window: Declared(0)}, 0},
		"own part is unknown":  {Transport{Type: Redis, Window: Declared(0), Retry: RetryStrategy{Service: "app.retry"}}, 0},
		"own part is too long": {Transport{Type: Redis, Window: Declared(0), LostAcks: DeclaredCount(math.MaxInt64)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := windowIn(at("orders", test.transport)).ShorterThan
			if (got == nil) != (test.want == 0) || got != nil && *got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
