package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/messaginginbox/operator/internal/messenger"
)

const mask = "***"

var (
	userInformation  = regexp.MustCompile(`(://)[^\s/'"]*@`)
	secretAssignment = regexp.MustCompile(`(?i)((?:password|passwd|secret|token|auth|access_key|secret_key)[\w-]*['"]?\s*[:=]\s*)[^\s&,}#][^&,}#\s]*`)
)

// maskSecrets hides the credentials of a line: those that the transports are known to
// have, and what looks like one.
func maskSecrets(line string, secrets []string) string {
	for _, secret := range secrets {
		if strings.TrimSpace(secret) != "" {
			line = strings.ReplaceAll(line, secret, mask)
		}
	}
	line = userInformation.ReplaceAllString(line, "${1}"+mask+"@")
	return secretAssignment.ReplaceAllString(line, "${1}"+mask)
}

// secretsOf are the longest first, since one may be a part of another.
func secretsOf(configuration *messenger.Configuration) []string {
	if configuration == nil {
		return nil
	}
	var secrets []string
	for _, transport := range configuration.Transports {
		secrets = append(secrets, transport.Secrets()...)
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// maxExcerpt is the longest line that is shown, in characters.
const maxExcerpt = 160

// excerpt is a line of a source as it may be shown; "" when there is none.
func excerpt(source messenger.Source, line int, secrets []string) string {
	if line < 1 {
		return ""
	}
	text := []rune(messenger.Printable(maskSecrets(source.Line(line), secrets)))
	if len(text) > maxExcerpt {
		text = append(text[:maxExcerpt:maxExcerpt], '…')
	}
	return string(text)
}
