package probe

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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

// NewRedis is a client with one connection to each node: a single server, a cluster when
// the DSN lists several hosts, or the master that sentinels name. It connects when it is
// first used. Close it.
func NewRedis(target Target) (redis.UniversalClient, error) {
	options, err := redisOptions(target)
	if err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(options), nil
}

func redisOptions(target Target) (*redis.UniversalOptions, error) {
	dsn := &target.dsn.Address
	user, password := dsn.Login()
	database, err := strconv.Atoi(target.option("dbindex", "0"))
	if err != nil {
		return nil, failed(ReasonInvalidURL, "dbindex in the DSN is not a number")
	}
	options := &redis.UniversalOptions{
		Addrs:                 redisAddresses(target),
		MasterName:            target.option("sentinel", target.option("sentinel_master", target.option("redis_sentinel", ""))),
		Username:              user,
		Password:              cmp.Or(password, target.option("auth", "")),
		DB:                    database,
		DialTimeout:           DefaultTimeLimit,
		ReadTimeout:           DefaultTimeLimit,
		MaxRetries:            -1, // the next look is the retry
		PoolSize:              1,
		MaxActiveConns:        1,
		DisableIdentity:       true,
		Protocol:              2,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
	}
	if len(options.Addrs) == 0 {
		return nil, failed(ReasonInvalidURL, "the DSN names no host: expected %s", expectedURL[target.Type])
	}
	if options.MasterName != "" {
		options.SentinelPassword = target.option("sentinel_auth", "")
	}
	if dsn.Scheme == "rediss" || target.option("tls", "") == "1" || target.option("tls", "") == "true" {
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: target.Authorities}
	}
	if strings.HasPrefix(options.Addrs[0], "/") {
		options.Addrs = options.Addrs[:1]
		socket := options.Addrs[0]
		options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: DefaultTimeLimit}).DialContext(ctx, "unix", socket)
		}
	}
	return options, nil
}

// redisAddresses reads the hosts before the path, else those of host[...] in the query,
// else the path of a socket.
func redisAddresses(target Target) []string {
	const port = "6379"
	var addresses []string
	for host := range strings.SplitSeq(target.dsn.Address.Host.String(), ",") {
		if host = strings.TrimSpace(host); host != "" {
			addresses = append(addresses, withPort(host, port))
		}
	}
	for _, option := range target.dsn.Address.Query {
		if option.Name == "host" && len(option.Sub) == 1 {
			addresses = append(addresses, withPort(option.Sub[0], cmp.Or(option.Value.String(), port)))
		}
	}
	if socket := target.dsn.Address.Path.String(); len(addresses) == 0 && socket != "" {
		addresses = append(addresses, socket)
	}
	return addresses
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
