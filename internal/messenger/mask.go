package messenger

import (
	"regexp"
	"slices"
	"strings"
)

// Masked stands for a text that is not shown.
const Masked = "***"

const reference = `%(?:env\([\w:.-]*\)|[\w.]+)%`

var (
	references = regexp.MustCompile(reference)
	plainText  = regexp.MustCompile(`^(?:![\w/]+ )?[\p{L}\p{N}_.,:{}()\\ -]*$`)
	dsnInText  = regexp.MustCompile(`[\w+.%()-]*://(?:.*@)?[^\s,"')]*`)
	dsnStart   = regexp.MustCompile(`^(?:[A-Za-z][\w+.-]*://|(?:redis|valkey)s?:|(?:` + reference + `)+(?:://)?)`)
	// plainHosts have no more than a port after a colon: anything else is a password.
	plainHosts = regexp.MustCompile(`^(?:\[[0-9a-fA-F:.]+\]|[\w.-]*)(?::\d*)?(?:,(?:\[[0-9a-fA-F:.]+\]|[\w.-]*)(?::\d*)?)*$`)
	optionName = regexp.MustCompile(`^[\w%.\[\]-]+$`)
)

// harmlessOptions are the options whose values are no credentials. All others are
// masked, since a custom transport may name its password as it likes.
var harmlessOptions = []string{
	"auto_setup", "binding_keys", "buffer_size", "bury_on_reject", "channel_max", "check_delayed_interval", "claim_interval",
	"confirm_timeout", "connect_timeout", "consumer", "dbindex", "debug", "default_publish_routing_key", "delay",
	"delete_after_ack", "delete_after_reject", "exchange", "flags", "frame_max", "get_notify_timeout", "group", "heartbeat",
	"host", "lazy", "name", "persistent", "poll_timeout", "port", "prefetch_count", "queue_name", "queues", "read_timeout",
	"redeliver_timeout", "redis_cluster", "redis_sentinel", "region", "rpc_timeout", "sentinel_master", "serialize",
	"serializer", "sslmode", "stream",
	"stream_max_entries", "table_name", "timeout", "ttr", "tube_name", "type", "use_notify", "vhost", "visibility_timeout",
	"wait_time", "write_timeout",
}

// Shown is a name as a message may quote it: Masked when it has characters that a DSN
// needs and a name, a service or a class does not.
func Shown(text string) string {
	if plainText.MatchString(references.ReplaceAllString(text, "")) && !strings.Contains(text, "://") {
		return text
	}
	return Masked
}

// MaskText hides each DSN in a sentence.
func MaskText(text string) string { return dsnInText.ReplaceAllString(text, Masked) }

// maskDSN hides everything up to the last @, and in the query every option that is not
// known to be harmless. A text that is no DSN is hidden wholly.
func maskDSN(dsn string) string {
	start := dsnStart.FindString(dsn)
	rest := dsn[len(start):]
	if start == "" || !strings.HasSuffix(start, "//") && rest != "" && rest[0] != '?' && rest[0] != '/' && !strings.Contains(rest, "@") {
		return Masked
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		start, rest = start+Masked+"@", rest[at+1:]
	} else if !plainHosts.MatchString(references.ReplaceAllString(authorityOf(rest), "0")) {
		return start + Masked
	}
	rest, _, hasFragment := strings.Cut(rest, "#")
	address, query, hasQuery := strings.Cut(rest, "?")
	masked := start + address
	if hasQuery {
		masked += "?" + maskQuery(query)
	}
	if hasFragment {
		masked += "#" + Masked
	}
	return masked
}

func authorityOf(address string) string {
	if end := strings.IndexAny(address, "/?#"); end >= 0 {
		return address[:end]
	}
	return address
}

func maskQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, hasValue := strings.Cut(pair, "=")
		base, _, _ := strings.Cut(unescape(name), "[")
		harmless := slices.Contains(harmlessOptions, base)
		switch {
		case pair == "" || harmless && Shown(unescape(references.ReplaceAllString(value, ""))) != Masked:
		case hasValue && optionName.MatchString(name):
			pairs[i] = name + "=" + Masked
		default:
			pairs[i] = Masked
		}
	}
	return strings.Join(pairs, "&")
}
