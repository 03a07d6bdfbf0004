package lint

import (
	"slices"
	"strings"

	"github.com/messaginginbox/operator/internal/messenger"
)

// hide hides the credentials that the transports are known to have.
func hide(text string, secrets []string) string {
	for _, secret := range secrets {
		if strings.TrimSpace(secret) != "" {
			text = strings.ReplaceAll(text, secret, messenger.Masked)
		}
	}
	return text
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
	text := []rune(messenger.Printable(hide(messenger.MaskLine(source.Line(line)), secrets)))
	if len(text) > maxExcerpt {
		text = append(text[:maxExcerpt:maxExcerpt], '…')
	}
	return string(text)
}
