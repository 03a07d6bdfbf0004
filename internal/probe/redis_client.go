package probe

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// quiet drops what the client library logs by itself: each failure is in a status.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

// StreamKeys are a redis transport's stream, its set of delayed messages, and the group.
func (t Target) StreamKeys() (stream, delayed, group string) {
	stream = cmp.Or(t.Place.Stream, t.option("stream", "messages"))
	return stream, stream + "__queue", cmp.Or(t.Place.Group, t.option("group", "symfony"))
}

// NewRedis is a client with one connection to each node that it needs: to a single server,
// to the master that sentinels name, or to nodes of a cluster. As for Symfony, several hosts
// are those of a cluster, unless a master is named. It connects when it is first used. Close it.
func NewRedis(target Target) (redis.UniversalClient, error) {
	addresses := redisAddresses(target)
	if len(addresses) == 0 {
		return nil, failed(ReasonInvalidURL, "the DSN names no host: expected %s", expectedURL[target.Type])
	}
	database, err := strconv.Atoi(target.option("dbindex", "0"))
	if err != nil {
		return nil, failed(ReasonInvalidURL, "dbindex in the DSN is not a number")
	}
	user, password := target.dsn.Address.Login()
	if auth := target.option("auth", ""); auth != "" { // Symfony prefers it
		user, password = "", auth
	}
	dialer := redisDialer{encryption: target.encryption()}
	options := &redis.UniversalOptions{
		Addrs:                 addresses[:1],
		Dialer:                dialer.dial,
		Username:              user,
		Password:              password,
		DB:                    database,
		DialTimeout:           dialTimeout,
		ReadTimeout:           DefaultTimeLimit,
		MaxRetries:            -1, // the next look is the retry
		PoolSize:              1,
		MaxActiveConns:        1,
		DisableIdentity:       true,
		Protocol:              2,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
	}
	switch master := target.masterName(); {
	case master != "":
		options.Dialer = (&sentinels{redisDialer: dialer, addresses: addresses, masterName: master, broker: target.Broker()}).dial
	case target.isCluster():
		options.Addrs, options.IsClusterMode = addresses, true
		options.Dialer = (&cluster{redisDialer: dialer}).dial
	}
	return redis.NewUniversalClient(options), nil
}

// masterName is the name by which sentinels know the master; "" when there are none.
func (t Target) masterName() string {
	return t.option("sentinel", t.option("redis_sentinel", t.option("sentinel_master", "")))
}

// isCluster says whether the target is a cluster of redis, as Symfony reads its DSN.
func (t Target) isCluster() bool {
	return t.Type == redelivery.Redis && t.masterName() == "" &&
		(len(redisAddresses(t)) > 1 || len(t.subOptions("host")) > 0 || t.dsn.Setting("redis_cluster").IsTrue())
}

// redisAddresses reads the hosts before the path, else those of host[...] in the query,
// else the path of a socket.
func redisAddresses(target Target) []string {
	var addresses []string
	for host := range strings.SplitSeq(target.dsn.Address.Host.String(), ",") {
		if host = strings.TrimSpace(host); host != "" {
			addresses = append(addresses, redisAddress(host))
		}
	}
	if len(addresses) > 0 {
		return addresses
	}
	for host := range target.subOptions("host") {
		addresses = append(addresses, redisAddress(host))
	}
	slices.Sort(addresses)
	if socket := target.dsn.Address.Path.String(); len(addresses) == 0 && socket != "" {
		addresses = append(addresses, socket)
	}
	return addresses
}

func redisAddress(host string) string {
	if strings.HasPrefix(host, "/") {
		return strings.TrimSuffix(host, ":") // Symfony's sign of a socket
	}
	return withPort(host, "6379")
}

func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// enteredAt is the time in the id of a stream's entry; false when it has none.
func enteredAt(id string) (time.Time, bool) {
	digits, _, _ := strings.Cut(id, "-")
	milliseconds, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || milliseconds <= 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(milliseconds).UTC(), true
}
