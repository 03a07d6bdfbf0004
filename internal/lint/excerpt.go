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

// excerpt is a line as it may be shown.
func excerpt(line string, secrets []string) string {
	text := []rune(messenger.Printable(hide(messenger.MaskLine(line), secrets)))
	if len(text) > maxExcerpt {
		text = append(text[:maxExcerpt:maxExcerpt], '…')
	}
	return string(text)
}
