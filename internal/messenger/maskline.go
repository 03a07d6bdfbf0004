package messenger

import (
	"regexp"
	"slices"
	"strings"
)

// harmlessKeys are the keys of framework.messenger whose values are names, numbers or switches.
var harmlessKeys = []string{
	"connection", "default_bus", "doctrine_transaction", "enabled", "failure_transport", "generator", "id",
	"identity_stamps", "inbox", "jitter", "max_delay", "max_retries", "middleware", "multiplier", "outbox", "rate_limiter", "reset_on_message", "resource",
	"senders", "service", "transport",
}

var (
	switchWord   = regexp.MustCompile(`^(?i:true|false|null|~|yes|no|on|off|[>|][+-]?)$`)
	environments = regexp.MustCompile(`^(?:when@\w+|<<)$`)
)

// MaskLine is a line of YAML as it may be shown: keys, switches, and the values that
// are known to be harmless. Of a DSN it shows the scheme, the host and harmless options.
func MaskLine(line string) string {
	masker := lineMasker{rest: line}
	for masker.rest != "" {
		masker.next()
	}
	return masker.masked.String()
}

// lineMasker reads a line as YAML does, but it takes a comma or a bracket for the end
// of a value everywhere, since the line may lie within braces that began above it.
type lineMasker struct {
	rest   string
	masked strings.Builder
	// key is the last one on the line; a value may follow it, but no other key.
	key        string
	wantsValue bool
	spaced     bool
}

func (m *lineMasker) next() {
	first := m.rest[0]
	switch {
	case strings.IndexByte("{}[],", first) >= 0:
		m.wantsValue = false
		m.copy()
	case first == ' ' || first == '\t':
		m.copy()
		m.spaced = true
		return
	case first == ':', first == '-' && (len(m.rest) == 1 || m.rest[1] == ' '):
		m.copy()
	case first == '#' && (m.spaced || m.masked.Len() == 0):
		m.masked.WriteString("# " + Masked)
		m.rest = ""
	default:
		m.scalar()
	}
	m.spaced = false
}

func (m *lineMasker) copy() {
	m.masked.WriteByte(m.rest[0])
	m.rest = m.rest[1:]
}

func (m *lineMasker) scalar() {
	quote, text, rest := cutScalar(m.rest)
	closed := quote == "" || len(rest) < len(m.rest)-len(text)-1
	m.rest = rest
	after := strings.TrimLeft(rest, " \t")
	isKey := !m.wantsValue && strings.HasPrefix(after, ":") && (quote != "" || len(after) == 1 || after[1] == ' ' || after[1] == '\t')
	m.masked.WriteString(quote)
	switch {
	case isKey:
		m.key, m.wantsValue = text, true
		m.masked.WriteString(maskKey(text))
	case !closed:
		m.masked.WriteString(Masked)
		return
	default:
		m.masked.WriteString(maskValue(m.key, text))
	}
	m.masked.WriteString(quote)
}

func maskKey(key string) string {
	if environments.MatchString(key) {
		return key
	}
	return Shown(key)
}

func maskValue(key, value string) string {
	name := strings.ReplaceAll(key, "-", "_")
	harmless := slices.Contains(harmlessKeys, name) || slices.Contains(harmlessOptions, name)
	switch {
	case value == "" || switchWord.MatchString(value) || harmless && Shown(value) == value:
		return value
	case harmless && !strings.Contains(value, "://"):
		return Masked
	}
	return maskDSN(value)
}

// cutScalar takes the first scalar off a text. A quote that is never closed reaches to the end.
func cutScalar(text string) (quote, scalar, rest string) {
	switch text[0] {
	case '\'', '"':
		end := closingQuote(text)
		if end < 0 {
			return text[:1], text[1:], ""
		}
		return text[:1], text[1:end], text[end+1:]
	}
	for i := 1; i < len(text); i++ {
		ends := false
		switch text[i] {
		case '}', ']':
			ends = true
		case ',', ':':
			ends = i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t'
		case '#':
			ends = text[i-1] == ' ' || text[i-1] == '\t'
		}
		if ends {
			scalar = strings.TrimRight(text[:i], " \t")
			return "", scalar, text[len(scalar):]
		}
	}
	scalar = strings.TrimRight(text, " \t")
	return "", scalar, text[len(scalar):]
}

// closingQuote skips ” and \".
func closingQuote(text string) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		default:
			return i
		}
	}
	return -1
}
