package messenger

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/messaginginbox/operator/internal/redelivery"
)

// maxOptions is the largest number of options that PHP reads from a query.
const maxOptions = 1000

// maxNodes is the largest number of addresses in one DSN that are told apart.
const maxNodes = 64

// DSN is a transport's data source name, taken apart. What only the application's
// environment knows stays an Expression.
type DSN struct {
	// Type follows from the scheme. Custom is a scheme that none of Symfony's own bridges takes.
	Type redelivery.Type
	// SchemeKnown is false when the scheme is behind an environment variable: Type is then Custom.
	SchemeKnown bool
	// Scheme before the colon; "" when it is not known.
	Scheme string
	// Address is everything up to the query, without credentials.
	Address Expression
	// Host with its port, or a list of them; for doctrine the name of a connection.
	Host Expression
	// Path after the host, with its first slash.
	Path Expression
	// Query has the options in order.
	Query []QueryOption
	// Credentials says that the DSN carries a user, a password or a key.
	Credentials bool
	// Secrets are the credentials that are written out in the DSN; never show them.
	Secrets []string

	user, password string
}

// QueryOption is one option of a DSN's query: NAME[SUB]=VALUE.
type QueryOption struct {
	Name  string
	Sub   []string
	Value Expression
}

var sqsURL = regexp.MustCompile(`^https://sqs\.[\w-]+\.amazonaws\.(com|com\.cn|eu)/.+`)

var redisScheme = regexp.MustCompile(`^(?:redis|valkey)s?:`)

// ParseDSN takes a DSN apart as Symfony's transport factories do. It accepts any text.
func ParseDSN(dsn Expression) DSN {
	text := dsn.text
	parsed := DSN{Type: redelivery.Custom}
	scheme, rest, found := strings.Cut(text, ":")
	if found && scheme != "" && !strings.ContainsAny(scheme, "/?#@"+string(opening)) {
		parsed.Scheme, parsed.SchemeKnown = scheme, true
		parsed.Type = typeOf(text)
	} else {
		rest = text
	}
	nodes := []string{rest}
	if parsed.Type == redelivery.Redis {
		nodes = strings.SplitN(rest, ",", maxNodes)
		for i, node := range nodes[1:] {
			node = redisScheme.ReplaceAllString(strings.TrimSpace(node), "")
			nodes[i+1] = "//" + strings.TrimPrefix(node, "//") // before 7.3 it needed no scheme
		}
	}
	var hosts, addresses []string
	for _, node := range nodes {
		host, path := parsed.readNode(dsn, node)
		hosts = append(hosts, host)
		addresses = append(addresses, host+path)
		if path != "" {
			parsed.Path = dsn.of(path)
		}
	}
	parsed.Host = dsn.of(strings.Join(hosts, ","))
	parsed.Address = dsn.of(strings.Join(addresses, ","))
	return parsed
}

// typeOf knows the prefixes that Symfony's own bridges support; the case counts.
func typeOf(dsn string) redelivery.Type {
	for _, known := range []struct {
		prefix string
		is     redelivery.Type
	}{
		{"doctrine://", redelivery.Doctrine},
		{"redis:", redelivery.Redis},
		{"rediss:", redelivery.Redis},
		{"valkey:", redelivery.Redis},
		{"valkeys:", redelivery.Redis},
		{"amqp://", redelivery.AMQP},
		{"amqps://", redelivery.AMQP},
		{"sqs://", redelivery.SQS},
		{"beanstalkd://", redelivery.Beanstalkd},
		{"sync://", redelivery.Sync},
		{"in-memory://", redelivery.InMemory},
	} {
		if strings.HasPrefix(dsn, known.prefix) {
			return known.is
		}
	}
	if sqsURL.MatchString(dsn) {
		return redelivery.SQS
	}
	return redelivery.Custom
}

// readNode takes //user:password@host:port/path?query#fragment apart.
func (d *DSN) readNode(dsn Expression, node string) (host, path string) {
	node = d.cutUnescapedLogin(dsn, node)
	node, _, _ = strings.Cut(node, "#")
	node, query, _ := strings.Cut(node, "?")
	d.readQuery(dsn, query)
	authority, hasAuthority := strings.CutPrefix(node, "//")
	if !hasAuthority {
		if d.SchemeKnown {
			return "", node
		}
		authority = node
	}
	if slash := strings.IndexByte(authority, '/'); slash >= 0 {
		authority, path = authority[:slash], authority[slash:]
	}
	host = authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		host = authority[at+1:]
		d.Credentials = d.Credentials || at > 0
		_, password, hasPassword := strings.Cut(authority[:at], ":")
		if !hasPassword {
			password = authority[:at] // a user alone: redis takes it for the password
		}
		d.addSecret(dsn.of(password))
		d.setLogin(authority[:at])
	}
	return host, path
}

// secretOptions are options that hold a credential.
var secretOptions = []string{"auth", "password", "access_key", "secret_key", "session_token"}

// IsSecretOption says whether an option of a transport holds a credential.
func IsSecretOption(name string) bool { return slices.Contains(secretOptions, name) }

func (d *DSN) addSecret(secret Expression) {
	d.Secrets = append(d.Secrets, secret.literals()...)
}

// literals are the parts that are written out, but for those too short to hide.
func (e Expression) literals() []string {
	separated := e.replace(func(int) string { return "\x00" })
	return slices.DeleteFunc(strings.Split(separated, "\x00"), func(text string) bool { return len(text) < 2 })
}

// readQuery is PHP's parse_str.
func (d *DSN) readQuery(dsn Expression, query string) {
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		if len(d.Query) >= maxOptions {
			return
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, subs, _ := strings.Cut(unescape(rawName), "[")
		option := QueryOption{Name: strings.Map(phpName, name), Value: dsn.of(unescape(rawValue))}
		for sub := range strings.SplitSeq(subs, "[") {
			if key, closed := strings.CutSuffix(sub, "]"); closed {
				option.Sub = append(option.Sub, key)
			}
		}
		if option.Name == "" {
			continue
		}
		if IsSecretOption(option.Name) {
			d.Credentials = true
			d.addSecret(option.Value)
			d.addSecret(dsn.of(rawValue))
		}
		d.Query = append(d.Query, option)
	}
}

func phpName(r rune) rune {
	if r == '.' || r == ' ' {
		return '_'
	}
	return r
}

// unescape leaves a text as it is when its escapes are not valid, or would forge the
// marks of an unknown part.
func unescape(text string) string {
	unescaped, err := url.QueryUnescape(text)
	if err != nil || strings.Count(unescaped, string(opening)) != strings.Count(text, string(opening)) ||
		strings.Count(unescaped, string(closing)) != strings.Count(text, string(closing)) {
		return text
	}
	return unescaped
}
